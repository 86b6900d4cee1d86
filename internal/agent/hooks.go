package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
)

var (
	// errDrainTimeout is the cause of a context that the drain timeout ended.
	errDrainTimeout = errors.New("--drain-timeout is over")
	// errFenceLead is the cause of the end of a fence hook that took too long.
	errFenceLead = errors.New("a third of --fence-after is over")
)

// drainer asks the drain hook whether the work has stopped.
type drainer struct {
	*beside
	timeout       time.Duration
	giveAtTimeout bool
	// ask blocks until the work under the id has stopped, or ctx ends.
	ask func(ctx context.Context, id identity.Identity) error
}

// stopped blocks until the work has stopped, and is what allocator.Options.Stopped asks for.
func (d *drainer) stopped(ctx context.Context) error {
	id, told := d.mayWork()
	if !told {
		return nil // no work goes on under an id that nobody was told of
	}
	bounded := ctx
	if d.timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeoutCause(ctx, d.timeout, fmt.Errorf("%w (%s)", errDrainTimeout, d.timeout))
		defer cancel()
	}
	err := d.ask(bounded, id)
	switch {
	case err == nil:
		return d.beside.stopped(id)
	case !errors.Is(err, errDrainTimeout) || !d.giveAtTimeout:
		return err
	}
	d.o.Allocator.Log.Info("the work has not stopped in time; its slot is given away all the same, and two pods may act under one id", "id", id.ID, "epoch", id.Epoch, "reason", err.Error())
	return d.beside.stopped(id)
}

// fencer stops the work when the id is given up for lack of contact.
type fencer struct {
	*beside
	lead time.Duration
	// kill stops the work.
	kill func(ctx context.Context, id identity.Identity) error
}

// fenceRetry is the time between two tries of the fence hook.
const fenceRetry = 200 * time.Millisecond

// fence blocks until the work is stopped, for the lead at most, and does not stop half-way when ctx ends.
func (f *fencer) fence(ctx context.Context) {
	f.withdraw(identity.StateFenced)
	id, told := f.mayWork()
	if !told {
		return // no work goes on under an id that nobody was told of
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), f.lead, errFenceLead)
	defer cancel()
	var err error
	for {
		if err = f.kill(ctx, id); err == nil {
			err = f.stopped(id)
			break
		}
		if !sleep(ctx, fenceRetry) {
			break
		}
	}
	if err != nil {
		f.o.Allocator.Log.Error(err, "the fence hook failed; the work may go on under an id that is given up", "id", id.ID, "epoch", id.Epoch)
	}
}
