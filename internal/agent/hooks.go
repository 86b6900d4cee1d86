package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
)

var (
	// errDrainTimeout is the cause of the hook's context if the drain timeout is over.
	errDrainTimeout = errors.New("--drain-timeout is over")
	// errFenceLead is the cause of the hook's context if a fence hook takes too long.
	errFenceLead = errors.New("a third of --fence-after is over")
)

// drainer waits for the drain hook.
type drainer struct {
	*watchWork
	timeout       time.Duration
	giveAtTimeout bool
	// ask blocks until the work under the id has stopped, or ctx ends.
	ask func(ctx context.Context, id identity.Identity) error
}

// stopped implements allocator.Options.Stopped. It blocks until the work has stopped.
func (d *drainer) stopped(ctx context.Context) error {
	id, mayWork := d.mayWork()
	if !mayWork {
		return nil
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
		return d.watchWork.stopped(id)
	case !errors.Is(err, errDrainTimeout) || !d.giveAtTimeout:
		return err
	}
	d.o.Allocator.Log.Info("the work has not stopped in time; its slot is given away all the same, and two pods may act under one id", "id", id.ID, "epoch", id.Epoch, "reason", err.Error())
	return d.watchWork.stopped(id)
}

// fencer stops the work when the process is fenced.
type fencer struct {
	*watchWork
	lead time.Duration
	// kill stops the work.
	kill func(ctx context.Context, id identity.Identity) error
}

// fenceRetry is the time between two tries of the fence hook.
const fenceRetry = 200 * time.Millisecond

// fence stops the work. It blocks until the work has stopped, but no longer than the lead, even if ctx ends.
func (f *fencer) fence(ctx context.Context) {
	f.showFenced()
	id, mayWork := f.mayWork()
	if !mayWork {
		return
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
		f.o.Allocator.Log.Error(err, "the fence hook failed; the work may go on under an id that is withdrawn", "id", id.ID, "epoch", id.Epoch)
	}
}
