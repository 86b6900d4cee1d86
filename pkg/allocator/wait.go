package allocator

import (
	"context"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// reserveTime is how long a free slot stays reserved for pods that gave no slot away, and reserveTimeFailed how long for pods whose
	// program has not failed.
	reserveTime       = 10 * time.Second
	reserveTimeFailed = time.Minute
)

// waitTurn waits this pod's random time, or until another pod's write names this pod or leaves nothing to plan.
// It returns the owner of that write. The pod may write its receipt from it, but has to read the owner again before it acts.
func (c *claimer) waitTurn(ctx context.Context, scale time.Duration) (heard *store.Owner, err error) {
	c.listenToOwner()
	return c.listenFor(ctx, c.pace.Window(c.contenders, scale), func(owner store.Owner) bool {
		if named(owner, c.Allocator) && owner.Clean() {
			return true
		}
		_, nothing := c.foresee(owner)
		return nothing
	})
}

// waitForSlot waits until a plan may come out differently, because the count, the assignment, a hand-over
// or a pod changed. In case a watch is silent, it waits no longer than about half a minute.
func (c *claimer) waitForSlot(ctx context.Context) error {
	c.tellWaiting()
	if c.outcome.Scarce || c.outcome.TooLarge != nil {
		if err := c.showLife(ctx); err != nil {
			return err
		}
	}
	if c.outcome.TooLarge != nil {
		c.happened.Tell(event.NoRoom{About: c.planned.About(), Detail: c.outcome.TooLarge.Detail()})
	}
	c.listen()
	if c.podStreams == nil {
		c.podStreams = c.followPods(ctx, c.planned)
	}
	again := c.clock.Now().Add(c.pace.ReadAgain())
	for {
		news, err := c.waitForNews(ctx, c.wakeIn(again))
		if err != nil {
			return err
		}
		if !news {
			c.unsure = true
			return nil
		}
		if err := c.watchDenied(); err != nil {
			return err
		}
		if c.heardMore() {
			return nil
		}
	}
}

// wakeIn returns for how long a waiter relies on its watches: until again at the latest.
func (c *claimer) wakeIn(again time.Time) time.Duration {
	in, fenceAfter := again.Sub(c.clock.Now()), c.outcome.FenceAfter
	if over, ok := c.quarantined.next(assignment.QuarantineTime(fenceAfter)); ok && fenceAfter > 0 {
		in = min(in, over)
	}
	if lost, ok := c.departures.next(); ok {
		in = min(in, lost)
	}
	for _, left := range []time.Duration{c.standBack(), c.reservedFor()} {
		if left > 0 {
			in = min(in, left)
		}
	}
	return in
}

// waitForNews waits until a stream has news, or for d.
func (c *claimer) waitForNews(ctx context.Context, d time.Duration) (news bool, err error) {
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	c.markAtRest()
	defer c.markBusy()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-timer.C():
		return false, nil
	case <-c.owner.Changed():
	case <-c.podStreams.owned.Changed():
	case <-c.podStreams.labelled.Changed():
	case <-c.self.Changed():
		return true, c.stillHere(ctx)
	}
	return true, nil
}

// waitForOwner waits for a deleted owner to come back under its name, or a while.
func (c *claimer) waitForOwner(ctx context.Context) error {
	if what := fmt.Sprintf("%s in namespace %s to exist", c.ref, c.ref.Namespace); what != c.Waiting() {
		c.setWaiting(what)
		c.happened.Tell(event.OwnerMissing{Reason: what})
	}
	c.listen()
	timer := c.clock.NewTimer(c.retry.Next())
	defer timer.Stop()
	c.markAtRest()
	defer c.markBusy()
	select {
	case <-ctx.Done():
		return c.noSlot(ctx)
	case <-timer.C():
	case <-c.owner.Changed():
		c.noteStale()
	case <-c.self.Changed():
		return c.stillHere(ctx)
	}
	return nil
}

// stillHere ends a claim whose pod was deleted.
func (c *claimer) stillHere(ctx context.Context) error {
	if pod, ok := c.self.Get(c.o.Pod); !c.self.Synced() || (ok && pod.UID == c.pod.UID) {
		return nil
	}
	return c.readPod(ctx)
}
