package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

var (
	// errDrainTimeout is the cause of the drain hook's context after the drain timeout.
	errDrainTimeout = errors.New("--drain-timeout is over")
	// errFenceLead is the cause of the fence hook's context if the hook takes too long.
	errFenceLead = errors.New("a third of --fence-after is over")
)

// drainer waits for the drain hook.
type drainer struct {
	*watchWork
	timeout       time.Duration
	giveAtTimeout bool
	// ask blocks until the work named by the stop has stopped, or ctx ends.
	ask func(ctx context.Context, id identity.Identity, stop allocator.Stop) error
}

// stop implements allocator.Options.Stop. It asks about partitions even if this process has not shown them, because an earlier process of the pod may have
// shown them to the program.
func (d *drainer) stop(ctx context.Context, stop allocator.Stop) error {
	if err := d.keepNumber(stop.Number); err != nil {
		return err
	}
	id, mayWork := d.mayWork()
	if stop.All && !mayWork {
		return nil
	}
	bounded, cancel := d.bound(ctx)
	defer cancel()
	err := d.ask(bounded, id, stop)
	if errors.Is(err, errDrainTimeout) && d.giveAtTimeout {
		d.logGiven(id, stop, err)
		err = nil
	}
	if err == nil && stop.All {
		return d.stopped(id)
	}
	return err
}

func (d *drainer) logGiven(id identity.Identity, stop allocator.Stop, reason error) {
	log := d.o.Allocator.Log.WithValues("id", id.ID, "reason", reason.Error())
	if stop.All {
		// Log: `--drain-timeout` is over, with `--drain-timeout-action=give`.
		// Do: find out why the program is slow to stop; `keep` is the safe choice.
		log.Info("the work has not stopped in time; its slot is given away anyway, and two pods may act under one id", "token", id.Token)
		return
	}
	// Log: `--drain-timeout` is over, with `--drain-timeout-action=give`.
	// Do: find out why the program is slow to stop; `keep` is the safe choice.
	log.Info("the work on some partitions has not stopped in time; they are given away anyway, and two pods may work on one partition",
		"partitions", stop.Partitions.String())
}

// bound returns ctx with the drain timeout added.
func (d *drainer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d.timeout, fmt.Errorf("%w (%s)", errDrainTimeout, d.timeout))
}

// fencer stops the work when the process is fenced.
type fencer struct {
	*watchWork
	lead time.Duration
	// kill stops the work.
	kill func(ctx context.Context, id identity.Identity) error
	// fencing is locked while a fence that begin started is running. begun waits for these fences.
	fencing sync.Mutex
	begun   sync.WaitGroup
}

// begin withdraws the id and starts to stop the work, unless a fence is already running. It does not wait for it.
func (f *fencer) begin(ctx context.Context) {
	f.showFenced()
	if f.fencing.TryLock() {
		f.begun.Go(func() {
			defer f.fencing.Unlock()
			f.fence(ctx)
		})
	}
}

// fenceRetry is the time between two attempts of the fence hook.
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
		// Log: strict mode: `--fence-exec` failed or took longer than a third of `--fence-after`.
		// Do: read the error, which quotes the end of the output, and repair the hook.
		f.o.Allocator.Log.Error(err, "the fence hook failed; the work may continue under an id that is withdrawn", "id", id.ID, "token", id.Token)
	}
}
