package allocator

import (
	"context"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/work"
	"github.com/idalloc/idalloc/pkg/identity"
)

// inherit continues the work that an earlier process of the pod left.
func (a *Allocator) inherit(ctx context.Context) error {
	shown := identity.Pending(a.o.Pod, a.o.Namespace)
	shown.Owner = a.ref.Owner()
	a.state.Working = a.work.Inherit(shown)
	a.work.Failed(a.failuresLeft(), a.o.RestsAfterFailures, a.began)
	return a.giveBack(ctx)
}

// claim returns what package work needs to know about the claim.
func (a *Allocator) claim() work.Claim {
	f := a.source.Facts()
	return work.Claim{Ends: a.ends, Over: a.lease.Over(), Owner: a.ref.Owner(), Count: f.Count, Known: f.Known, Counted: f.Counted, Requester: f.Requester}
}

// claimNow is claim, but first fences the id if that is due.
func (a *Allocator) claimNow() work.Claim {
	claim := a.claim()
	if claim.Over && !claim.Ends {
		a.lease.Fence() // the goroutine that watches the time may not have run yet
	}
	return claim
}

// tell publishes the identity, if it has changed.
func (a *Allocator) tell() { a.work.Tell(a.state, a.claimNow()) }

// stop stops all work except for that on keep.
func (a *Allocator) stop(keep receipt.Share) { a.state = a.work.Stop(a.state, keep, a.claimNow()) }

// publish publishes the identity with this state, if it has changed.
func (a *Allocator) publish(state identity.State) { a.work.Publish(state, a.state, a.claim()) }

// begun records that T3 lets work on the share continue.
func (a *Allocator) begun(share receipt.Share) {
	if !a.work.Confirmed() {
		a.source.Took()
	}
	a.work.Begun(share)
}

// failuresLeft returns how often in a row the program had failed when this process began. A lock that this process finds shows that the process before it
// crashed, which is a failure if the work ended with it. If the lock is old, the program has worked since then, or has rested for that long.
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

// giveBack gives back a slot that an earlier process of this pod took shortly before it died, if the pod that made room for it waits. The work ended with
// that process, and this process has published nothing yet.
//
// Otherwise a revision whose program exits at once would take an id from a working pod at each restart. Whether a program works is known only after it has
// run under the id. So each new pod may try once, and then leaves the slot to the pod that made room.
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
