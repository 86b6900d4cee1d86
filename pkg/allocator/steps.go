package allocator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/invariant"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

// againTime is how long a process waits before it retakes partitions that another pod also locked, and before it looks again at another pod's Lease.
const againTime = 2 * time.Second

// contention records what is proposed to this pod and held by others.
type contention struct {
	// backoff applies if another pod locks the same slot. again is when this pod may try again to take what others hold.
	backoff *pace.Backoff
	again   time.Time
	// lease is the Lease of another pod that this one waits for, at least until then.
	lease slotlease.Lease
	until time.Time
}

// errOtherOwner means that another object owns this pod now.
var errOtherOwner = errors.New("another object owns the pod")

// errMayNotWrite means that the admission policy denies this process a receipt for its owner, because the controller does not name that owner on the pod.
var errMayNotWrite = errors.New("idalloc-controller does not name the owner on the pod")

// write swaps the receipt (T2).
func (a *Allocator) write(ctx context.Context, lock duty.Lock) error {
	if !a.source.Facts().MayWrite {
		return errMayNotWrite
	}
	next := receipt.Receipt{
		UID: string(a.o.PodUID), Owner: a.ref.String(), State: lock.State, Share: lock.Share, Write: receipt.Draw(), Rank: a.work.Rank(a.state.Lock, lock, a.receipt().Rank),
		HandsOver: a.o.HandsOver && lock.State == receipt.Locks, Strict: a.state.Strict && lock.State == receipt.Locks,
	}
	if lock.Held.Slot {
		next.Token, next.Tokens = a.work.Token(), a.work.Tokens(lock.Held.Partitions)
	}
	before, began := a.state.Lock, a.clock.Now()
	pod, err := a.o.Store.SwapLock(ctx, a.pod, a.wrote, next)
	switch {
	case err == nil:
		a.pod = pod
		a.wrote, a.version, a.wroteAt, a.failed, a.conflict = next.Encode(), pod.ResourceVersion, a.clock.Now(), nil, false
		a.patience = a.pace.Confirm(a.wroteAt.Sub(began))
		a.state = a.state.Wrote(lock)
		token, _ := receipt.TokenOf(pod.ResourceVersion) // that of a lock can be read, or there is an error
		a.swapped(before, lock, token)
		a.heard()
		return nil
	case errors.Is(err, request.ErrGone):
		a.state = a.state.Failed(true)
		return a.readPod(ctx)
	case errors.Is(err, request.ErrNotKept), errors.Is(err, receipt.ErrNoToken):
		a.wrote = "" // the stored receipt is not this pod's, or has no usable token
	}
	a.conflict = errors.Is(err, request.ErrConflict)
	late := a.conflict || errors.Is(err, request.ErrAmbiguous) // a copy of the write may have arrived, or may still arrive
	if a.state = a.state.Failed(late); late {
		a.failed = append(a.failed, next.Encode())
	}
	return err
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
		f := a.source.Facts()
		a.happened.Tell(event.Given{About: f.About, ID: before.Share.ID, Count: f.Owned, Requester: f.Asker})
	}
	a.source.Gave()
}

// begin begins the work on the share.
func (a *Allocator) begin(share receipt.Share) {
	if a.lease.Over() {
		return // hear takes that in
	}
	invariant.Must(a.state.Confirms(share), "work begins only on what this pod locks, and T3 showed no other lock of it")
	a.state = a.state.Begun(share)
	a.wait.retry.Reset()
	a.contention.backoff.Reset()
	a.begun(share)
}

// secure updates this pod's Lease to cover the share, or releases the Lease if the share is empty.
func (a *Allocator) secure(ctx context.Context, share receipt.Share) error {
	if share.Empty() {
		id := a.state.Lease.ID
		f := a.source.Facts()
		forGood := f.Known && id >= f.Owned
		err := a.lease.LetGo(ctx, id, forGood)
		if forGood && err != nil && !request.Temporary(err) { // its Role may not permit deletion
			err = a.lease.LetGo(ctx, id, false)
		}
		if err != nil {
			a.state = a.state.MayHaveLease(share)
			return err
		}
		a.state = a.state.HasLease(share)
		return nil
	}
	other, left, err := a.lease.Secure(ctx, share)
	switch {
	case errors.Is(err, request.ErrAmbiguous), errors.Is(err, request.ErrNotKept):
		a.state = a.state.MayHaveLease(share)
		return err
	case err != nil:
		return err
	case left > 0:
		a.leaseTaken(other, left)
		return nil
	}
	a.contention.lease, a.contention.until = slotlease.Lease{}, time.Time{}
	a.state = a.state.HasLease(share)
	return nil
}

// leaseTaken is called when another pod has the Lease that this one needs. A pod that noted its slot before it became strict keeps the slot, unless the
// other pod still renews after doubt: then that pod works, and did not find the receipt.
func (a *Allocator) leaseTaken(other slotlease.Lease, left time.Duration) {
	now, name := a.clock.Now(), slotlease.Name(a.ref.String(), other.ID)
	if seen := a.contention.lease.Version; seen != "" && seen != other.Version && now.Sub(a.work.Resumed()) > doubt {
		a.state = a.state.Sure()
	}
	a.contention.lease, a.contention.until = other, now.Add(left)
	a.state = a.state.LeaseTaken()
	a.contention.again = now.Add(min(left, a.pace.Longer(againTime))) // its pod may release it earlier
	a.happened.Tell(event.NotTaken{Reason: fmt.Sprintf("pod %s has the Lease %s", other.Pod, name)})
	if t := a.state; t.Lock.State == receipt.Locks && !t.Taken {
		a.wait.after(now, a.wait.retry.Next(), fmt.Sprintf("pod %s, which has the Lease %s, to let it go", other.Pod, name))
	}
}
