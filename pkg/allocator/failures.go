package allocator

import (
	"context"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// restAfter is after how many failures in a row a process takes no partitions for a while. The receipt counts them, so the count outlives the process.
// Three ends within a minute would be a second count, with a clock that a restarted process does not know.
const restAfter = 3

// rest is a pause that failures bring about.
type rest struct {
	until time.Time
	// active says that the process takes no partitions now, and ended is when that ended last.
	active bool
	ended  time.Time
}

// failuresLeft is how often in a row the program had failed when this process began. A lock that it finds tells of a process that ended without a word,
// which is a failure if the work ended with it. A lock that has stood for long says that the program has worked since, or has rested for as long.
func (a *Allocator) failuresLeft() int {
	r, written := a.receipt(), store.LastWrite(a.pod.ManagedFields)
	switch {
	case !a.o.RestsAfterFailures || r.State != receipt.Locks:
	case !written.IsZero() && a.clock.Since(written) >= provenAfter:
		return 0
	case a.o.Left == nil:
		return r.Failures() + 1
	}
	return r.Failures()
}

// beginRest has a process take no partitions for a while whose program failed again and again.
func (a *Allocator) beginRest() {
	if a.o.RestsAfterFailures && a.work.failures >= restAfter {
		a.work.rest.until = a.plans.began.Add(a.pace.StandBack(a.work.failures))
	}
}

// followRest takes in the time, and whether others can work on the partitions.
func (a *Allocator) followRest() {
	r, now := &a.work.rest, a.clock.Now()
	if r.until.IsZero() || !a.view.ok() {
		return
	}
	if !a.othersDivide() || !now.Before(r.until) {
		r.until = time.Time{}
	}
	if active := !r.until.IsZero(); active != r.active {
		if r.active = active; !active {
			r.ended = now
		}
		a.happened.Tell(event.Paused{ID: a.state.Lock.Share.ID, Paused: active, Failed: a.work.failures, For: max(0, r.until.Sub(now))})
	}
}

// othersDivide reports whether another id has an entry and is among those that divide the partitions.
func (a *Allocator) othersDivide() bool {
	if a.agent {
		return a.view.told.Shared
	}
	offers, me := a.offers()
	return offers.Shared(me)
}

// rests reports whether the process is to take no partitions now.
func (a *Allocator) rests() bool { return a.work.paused || a.work.rest.active }

// pause begins or ends a pause of the work on partitions.
func (a *Allocator) pause(paused bool) {
	if a.work.paused != paused {
		a.work.paused = paused
		a.happened.Tell(event.Paused{ID: a.state.Lock.Share.ID, Paused: paused})
	}
}

// giveBack gives a slot back that an earlier process of this pod took and died with soon after, while a pod that made room for it waits. Its
// work ended with it, and this process has published nothing yet.
//
// Otherwise a revision whose program exits at once would take an id from a working pod at each restart. It is not known whether a program works before it
// has run under the id. So each new pod may try, and leaves the slot that it dropped to the pod that made room.
func (a *Allocator) giveBack(ctx context.Context) error {
	if !surplus(a.view.owner) || !a.diedSoon() {
		return nil
	}
	pods, err := census.Survey(ctx, a.o.Store, a.view.owner)
	if err != nil {
		a.view.outdate()
		return err
	}
	if proposal.MadeRoom(pods, a.o.Pod) {
		a.dropSlot()
	}
	return nil
}

// diedSoon reports whether an earlier process of this pod took the slot and died soon after, and this one has not begun.
func (a *Allocator) diedSoon() bool {
	fresh := a.wrote == "" && !a.work.published && !a.work.givesBack
	return fresh && a.o.Left == nil && a.receipt().State == receipt.Locks && a.clock.Since(store.LastWrite(a.pod.ManagedFields)) < provenAfter
}

func (a *Allocator) dropSlot() {
	r := a.receipt()
	a.work.failures = r.Failures() + 1
	a.work.givesBack = true
	a.happened.Tell(event.GivenBack{ID: r.Share.ID, Failed: a.work.failures})
}

// rank returns the rank that the next receipt says. stands is that of the one before.
func (w *work) rank(before, lock duty.Lock, stands int, now time.Time) int {
	failures := w.failures
	if w.proven(now) {
		failures = 0
	}
	switch {
	case lock.State == receipt.GaveUp && before.State == receipt.Locks:
		return failures + 1
	case lock.State == receipt.Locks && failures == 0:
		return 0
	case lock.State == receipt.Locks:
		return failures + 1
	}
	return max(stands, failures+min(failures, 1))
}

// proven reports whether the program has worked for long enough.
func (w *work) proven(now time.Time) bool {
	return !w.since.IsZero() && !w.rest.active && min(now.Sub(w.since), now.Sub(w.rest.ended)) >= provenAfter
}

// failed takes in that the process ends.
func (w *work) failed(byItself bool, now time.Time) {
	switch {
	case w.proven(now):
		w.failures = 0
	case byItself && !w.since.IsZero() && !w.paused && !w.rest.active:
		w.failures++
	}
}
