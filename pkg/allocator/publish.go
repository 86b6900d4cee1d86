package allocator

import (
	"context"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/work"
	"github.com/idalloc/idalloc/pkg/identity"
)

// inherit continues what an earlier process of the pod left.
func (a *Allocator) inherit(ctx context.Context) error {
	shown := identity.Pending(a.o.Pod, a.o.Namespace)
	shown.Owner = a.ref.Owner()
	a.state.Working = a.work.Inherit(shown)
	a.work.Failed(a.failuresLeft(), a.o.RestsAfterFailures, a.began)
	return a.giveBack(ctx)
}

// claim is what the work has to know of the claim.
func (a *Allocator) claim() work.Claim {
	f := a.source.Facts()
	return work.Claim{Ends: a.ends, Over: a.lease.Over(), Owner: a.ref.Owner(), Count: f.Count, Known: f.Known, Counted: f.Counted, Requester: f.Requester}
}

// claimNow is claim, after a fence that is due.
func (a *Allocator) claimNow() work.Claim {
	claim := a.claim()
	if claim.Over && !claim.Ends {
		a.lease.Fence() // the goroutine that watches the time may not have run yet
	}
	return claim
}

// tell publishes the identity, if it has changed.
func (a *Allocator) tell() { a.work.Tell(a.state, a.claimNow()) }

// stop stops the work, except for that on keep.
func (a *Allocator) stop(keep receipt.Share) { a.state = a.work.Stop(a.state, keep, a.claimNow()) }

// publish publishes the identity with this state, if it has changed.
func (a *Allocator) publish(state identity.State) { a.work.Publish(state, a.state, a.claim()) }

// begun records that T3 lets work on the share go on.
func (a *Allocator) begun(share receipt.Share) {
	if !a.work.Confirmed() {
		a.source.Took()
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

// giveBack gives a slot back that an earlier process of this pod took and died with soon after, while a pod that made room for it waits. Its
// work ended with it, and this process has published nothing yet.
//
// Otherwise a revision whose program exits at once would take an id from a working pod at each restart. It is not known whether a program works before it
// has run under the id. So each new pod may try, and leaves the slot that it dropped to the pod that made room.
func (a *Allocator) giveBack(ctx context.Context) error {
	r := a.receipt()
	diedSoon := r.State == receipt.Locks && a.wrote == "" && a.work.Untouched() && a.o.Left == nil && a.clock.Since(store.LastWrite(a.pod.ManagedFields)) < work.ProvenAfter
	if !diedSoon {
		return nil
	}
	made, err := a.source.MadeRoom(ctx)
	if made {
		a.work.GiveBack(r)
	}
	return err
}
