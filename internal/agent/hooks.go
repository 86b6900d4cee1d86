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
	// askPart blocks until the work on some partitions of the id has stopped, or ctx ends.
	askPart func(ctx context.Context, id identity.Identity, part partStop) error
}

// stopped implements allocator.Options.Stopped. It blocks until the work has stopped.
func (d *drainer) stopped(ctx context.Context) error {
	id, mayWork := d.mayWork()
	if !mayWork {
		return nil
	}
	bounded, cancel := d.bound(ctx)
	defer cancel()
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

// bound returns ctx with the drain timeout.
func (d *drainer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d.timeout, fmt.Errorf("%w (%s)", errDrainTimeout, d.timeout))
}

// stoppedPart blocks until the work on some partitions has stopped. It asks whether or not this process has shown them: the program may
// work on them because of an earlier process of the pod.
func (d *drainer) stoppedPart(ctx context.Context, part partStop) error {
	id, _ := d.mayWork()
	bounded, cancel := d.bound(ctx)
	defer cancel()
	err := d.askPart(bounded, id, part)
	if !errors.Is(err, errDrainTimeout) || !d.giveAtTimeout {
		return err
	}
	d.o.Allocator.Log.Info("the work on some partitions has not stopped in time; they are given away all the same, and two pods may work on one partition",
		"id", id.ID, "partitions", part.set.String(), "reason", err.Error())
	return nil
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
