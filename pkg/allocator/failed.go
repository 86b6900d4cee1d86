package allocator

import (
	"context"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
)

const (
	// provenAfter is how long work must go on under an id for its end not to count as a failure.
	provenAfter = 10 * time.Minute
	// minStandBack and maxStandBack bound how long a process whose pod failed waits before it has another pod's work stopped again. The
	// time doubles with each failure, and each process waits up to a third longer at random.
	minStandBack = 30 * time.Second
	maxStandBack = 10 * time.Minute
)

// failures returns how many failures the receipt reports when the slot is given away. byItself says that the work stopped
// although nobody told it to.
func (a *Allocator) failures(byItself bool) int {
	failed := a.receipt().Failures()
	switch {
	case a.held == nil || a.pause.active:
		return failed
	case min(a.clock.Since(a.held.since), a.clock.Since(a.pause.ended)) >= provenAfter:
		return 0
	case byItself:
		return failed + 1
	}
	return failed
}

// standBack returns for how long this process still has to wait before it may ask for another pod's slot, because its
// program failed; 0 or less if it may.
func (a *Allocator) standBack() time.Duration {
	failed := a.receipt().Failures()
	if failed == 0 {
		return 0
	}
	return a.standBackFor(failed) - a.clock.Since(a.began)
}

// standBackFor returns for how long a process stands back after this many failures.
func (a *Allocator) standBackFor(failed int) time.Duration {
	return a.pace.Longer(min(minStandBack<<min(failed-1, 8), maxStandBack))
}

// reservedFor returns for how long a free slot that this process saw is still reserved for other pods; 0 or less if it is not, or
// if it saw none.
func (c *claimer) reservedFor() time.Duration {
	if c.reservedSince.IsZero() {
		return 0
	}
	after := reserveTime
	if c.receipt().Failures() > 0 {
		after = reserveTimeFailed
	}
	return c.pace.Longer(after) - c.clock.Since(c.reservedSince)
}

// giveBack gives a slot back that an earlier process of this pod took and died with soon after, while a pod that made room for
// it waits. Nothing works under the id: the earlier work ended with its process, and this process has published no id yet. A
// process that was fenced did publish one, so its work may not have stopped.
func (c *claimer) giveBack(ctx context.Context, owner store.Owner) (given bool, err error) {
	r := c.receipt()
	if !c.o.DiesWithProcess || c.published || !r.Locks() || !owner.Clean() || !owner.Names(r.ID, c.o.Pod, c.pod.UID) || !surplus(owner) {
		return false, nil
	}
	if since := c.clock.Since(time.UnixMilli(r.Epoch)); since >= provenAfter {
		return false, nil
	}
	census, err := gc.Survey(ctx, c.store, owner)
	if err != nil || !plan.MadeRoom(census.Live, c.o.Pod) {
		return false, err
	}
	failed := r.Failed + 1
	c.happened.Tell(event.GivenBack{ID: r.ID, Failed: failed})
	c.becomePending(owner.Count)
	_, err = c.give(ctx, plan.Move, failed)
	return true, err
}
