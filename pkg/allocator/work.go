package allocator

import (
	"context"

	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/work"
	"github.com/idalloc/idalloc/pkg/identity"
)

// inherit continues what an earlier process of the pod left.
func (a *Allocator) inherit() {
	shown := identity.Pending(a.o.Pod, a.o.Namespace)
	shown.Owner = a.ref.Owner()
	a.state.Working = a.work.Inherit(shown)
	a.work.Failed(a.failuresLeft(), a.o.RestsAfterFailures, a.plans.began)
	if a.view.told.MadeRoom && a.diedSoon() {
		a.work.GiveBack(a.receipt())
	}
}

// claim is what the work has to know of the claim.
func (a *Allocator) claim() work.Claim {
	ok := a.view.ok()
	return work.Claim{
		Ends: a.ends, Over: a.lease.Over(), Owner: a.ref.Owner(), Count: a.count(), Known: ok, Counted: ok || a.keeps(), Requester: a.view.request.wanted(),
	}
}

// tell publishes the identity, if it has changed.
func (a *Allocator) tell() {
	claim := a.claim()
	if claim.Over && !claim.Ends {
		a.lease.Fence() // the goroutine that watches the time may not have run yet
	}
	a.work.Tell(a.state, claim)
}

// stop stops the work, except for that on keep.
func (a *Allocator) stop(keep receipt.Share) {
	claim := a.claim()
	if claim.Over && !claim.Ends {
		a.lease.Fence()
	}
	a.state = a.work.Stop(a.state, keep, claim)
}

// swapped records a write of the receipt.
func (a *Allocator) swapped(before, lock duty.Lock, token int64) {
	a.work.Wrote(lock, token)
	if lock.State == receipt.Locks {
		if yielded := before.Share.Partitions.Minus(lock.Share.Partitions); !yielded.Empty() {
			a.happened.Tell(event.Yielded{ID: lock.Share.ID, Partitions: yielded.String()})
		}
		return
	}
	if before.State == receipt.Locks {
		a.happened.Tell(event.Given{About: a.view.owner.About(), ID: before.Share.ID, Count: a.owned(), Requester: a.view.request.by})
	}
	a.view.request = request{}
	a.plans.gave()
}

// begun records that T3 lets work on the share go on.
func (a *Allocator) begun(share receipt.Share) {
	if !a.work.Confirmed() {
		a.listenAt = a.clock.Now().Add(a.pace.Watch(a.plans.contenders))
	}
	a.work.Begun(share)
}

// failuresLeft is how often in a row the program had failed when this process began. A lock that it finds tells of a process that ended without a word,
// which is a failure if the work ended with it. A lock that has stood for long says that the program has worked since, or has rested for as long.
func (a *Allocator) failuresLeft() int {
	r, written := a.receipt(), store.LastWrite(a.pod.ManagedFields)
	switch {
	case !a.o.RestsAfterFailures || r.State != receipt.Locks:
	case !written.IsZero() && a.clock.Since(written) >= work.ProvenAfter:
		return 0
	case a.o.Left == nil:
		return r.Failures() + 1
	}
	return r.Failures()
}

// othersDivide reports whether another id has an entry and is among those that divide the partitions.
func (a *Allocator) othersDivide() bool {
	if a.agent {
		return a.view.told.Shared
	}
	offers, me := a.offers()
	return offers.Shared(me)
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
		a.work.GiveBack(a.receipt())
	}
	return nil
}

// diedSoon reports whether an earlier process of this pod took the slot and died soon after, and this one has not begun.
func (a *Allocator) diedSoon() bool {
	fresh := a.wrote == "" && a.work.Untouched()
	return fresh && a.o.Left == nil && a.receipt().State == receipt.Locks && a.clock.Since(store.LastWrite(a.pod.ManagedFields)) < work.ProvenAfter
}
