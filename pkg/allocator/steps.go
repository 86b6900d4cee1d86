package allocator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// doubt is for how long a process that resumes lists again before it believes that another receipt stays.
const doubt = 10 * time.Second

// againTime is how long a process waits before it takes partitions again that another pod locked, too, and before it looks again at a Lease of
// another pod.
const againTime = 2 * time.Second

// contest is about what other pods have that this one is to have.
type contest struct {
	// backoff is that of a pod whose slot another pod locks, too. again is when what that one has may be taken again.
	backoff *pace.Backoff
	again   time.Time
	// lease is the Lease of another pod that this one waits for, and until when at least.
	lease store.Lease
	until time.Time
}

// errOtherOwner means that another object owns this pod now.
var errOtherOwner = errors.New("another object owns the pod")

// errUntold means that no policy permits an agent to write a receipt of its owner, because the controller does not name that owner on its pod.
var errUntold = errors.New("idalloc-controller does not name the owner on the pod")

// getPod reads the own pod. The API server does not accept the token of a pod that is gone, so where the stream says that it is gone, no other
// answer is to be had. Errors: ErrPodGone, or as of store.Store.
func (a *Allocator) getPod(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	pod, err := a.o.Store.GetPod(ctx, a.o.Namespace, a.o.Pod)
	switch {
	case errors.Is(err, store.ErrGone), err == nil && pod.UID != a.o.PodUID, apierrors.IsUnauthorized(err) && a.unseen():
		return nil, a.podGone()
	}
	return pod, err
}

// unseen reports whether the stream of the own pod says that it is gone.
func (a *Allocator) unseen() bool {
	stream := a.contact.Pod()
	if stream == nil {
		return false
	}
	pod, there := stream.Get(a.o.Pod)
	return !there || pod.UID != a.o.PodUID
}

// readPod reads the own pod.
func (a *Allocator) readPod(ctx context.Context) error {
	pod, err := a.getPod(ctx)
	if err != nil {
		return err
	}
	before := a.pod
	a.meet(pod)
	defer a.hearTold(pod)
	text := pod.Annotations[receipt.Key]
	switch same, late := text == a.wrote && labelsOf(pod) == labelsOf(before), slices.Contains(a.failed, text); {
	case a.state.Lock.State == receipt.Unreadable && a.wrote == "": // no lock of this pod is unbroken before its next write
		a.state = a.state.Read(damaged())
	case same && a.state.Renewed:
		a.state.Known = true // it was there all the time
	case a.wrote == "", same, late: // a start, or a write failed
		if late {
			a.wrote = text
		}
		lock := a.lockOn(pod)
		if same && a.conflict { // other bytes stood there for a moment, it seems
			lock.Held = duty.Held{}
			a.work.Forget()
		}
		a.state = a.state.Read(lock)
		a.work.Resume(a.state, a.receipt())
	default:
		a.hurt()
	}
	return nil
}

// meet takes in a newer moment of the own pod.
func (a *Allocator) meet(pod *metav1.PartialObjectMetadata) {
	if !a.agent && otherController(a.pod, pod) {
		a.view.suspect()
	}
	a.pod = pod
}

// hurt takes in that another program changed the receipt that this process wrote. Whatever it says now, it was gone for a moment.
func (a *Allocator) hurt() {
	a.happened.Tell(event.Damaged{
		// Event: a pod's receipt or labels were changed or removed. The pod stops its work and takes its id again, and has none for a moment. A
		// receipt that cannot be read locks its slot.
		// Do: stop the writer of the pods' annotations.
		About: a.view.owner.About(), Reason: "ReceiptDamaged",
		Detail: "annotation " + receipt.Key + " or the labels of pod " + a.o.Pod + " were changed or removed: its work stops, and the id is taken again",
	})
	a.state, a.wrote, a.failed = a.state.Read(damaged()), "", nil
	a.damage.Again(a.clock.Now())
	a.wait.after(a.clock.Now(), a.damage.Damping(), "its next try: the receipt or the labels of this pod were changed")
}

// write swaps the receipt (T2).
func (a *Allocator) write(ctx context.Context, lock duty.Lock) error {
	if !a.mayName() {
		return errUntold
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
		a.meet(pod)
		a.wrote, a.version, a.wroteAt, a.failed, a.conflict = next.Encode(), pod.ResourceVersion, a.clock.Now(), nil, false
		a.patience = a.pace.Confirm(a.wroteAt.Sub(began))
		a.state = a.state.Wrote(lock)
		token, _ := receipt.TokenOf(pod.ResourceVersion) // that of a lock can be read, or there is an error
		a.swapped(before, lock, token)
		a.hearTold(pod)
		return nil
	case errors.Is(err, store.ErrGone):
		a.state = a.state.Failed(true)
		return a.readPod(ctx)
	case errors.Is(err, store.ErrNotKept), errors.Is(err, receipt.ErrNoToken):
		a.wrote = "" // what stands there is not this pod's, or of no use to it
	}
	a.conflict = errors.Is(err, store.ErrConflict)
	late := a.conflict || errors.Is(err, store.ErrAmbiguous) // a copy of it may arrive, or may have
	if a.state = a.state.Failed(late); late {
		a.failed = append(a.failed, next.Encode())
	}
	return err
}

// list lists the others' receipts (T3), as they were when this pod's own was written, or later. The list must show that as it was written.
func (a *Allocator) list(ctx context.Context) error {
	if !a.confirmedBy().IsZero() {
		if lists, err := a.overdue(ctx); !lists {
			return err
		}
	}
	mine := a.state.Lock.Share
	which := store.Sought{Since: a.version}
	if mine.Of == 0 {
		which.IDs = []int{mine.ID} // but partitions may be locked under any slot
	}
	receipts, _, err := a.o.Store.Receipts(ctx, a.ref, which)
	if err != nil {
		return err
	}
	var others duty.Others
	own, by := false, ""
	for _, r := range receipts {
		switch {
		case r.UID == a.o.PodUID:
			own = r.Text == a.wrote
		case a.state.Strict && r.Strict && r.Overdue(a.clock.Now()): // its Lease says for how long
		default:
			if blocks := duty.LockOf(r.Receipt).Blocks(a.state.Lock); blocks.Any() {
				others, by = others.And(blocks), r.Pod
			}
		}
	}
	if !own {
		a.state = a.state.Lost()
		return fmt.Errorf("%w: the receipt on pod %s, or its labels, is not in the list of receipts as it was written", store.ErrNotKept, a.o.Pod)
	}
	a.state = a.state.Saw(others)
	a.compared(by)
	return nil
}

// compared takes in what T3 has shown, and a pod that locks something of the share, too; empty if there is none. A pod that withdraws from its
// slot tries again at a random time, because the other one may do the same. One that resumes lists again for a while.
func (a *Allocator) compared(by string) {
	switch t := a.state; {
	case by == "":
	case !t.Doubts && !t.Others.Slot:
		a.contest.again = a.clock.Now().Add(a.pace.Longer(againTime))
	default:
		a.happened.Tell(event.NotTaken{Reason: "pod " + by + " locks it, too"})
		if t.Doubts && a.clock.Since(a.work.Resumed()) <= doubt {
			a.wait.after(a.clock.Now(), a.wait.retry.Next(), "pod "+by+", which locks the same, to withdraw")
			return
		}
		a.state = t.Sure()
		a.contest.again = a.clock.Now().Add(a.contest.backoff.Next())
	}
	t := a.state
	works := t.Working.Within(t.Lock.Share)
	works.Partitions = works.Partitions.Minus(t.Others.Partitions)
	if t.Continues() && !works.Empty() && !t.Stopping.All {
		a.begun(works)
	}
}

// begin begins the work on the share.
func (a *Allocator) begin(share receipt.Share) {
	if a.lease.Over() {
		return // hear takes that in
	}
	a.state = a.state.Begun(share)
	a.wait.retry.Reset()
	a.contest.backoff.Reset()
	a.begun(share)
}

// secure has the own Lease say what the share has, or lets it go.
func (a *Allocator) secure(ctx context.Context, share receipt.Share) error {
	if share.Empty() {
		id := a.state.Lease.ID
		forGood := a.view.ok() && id >= a.owned()
		err := a.lease.LetGo(ctx, id, forGood)
		if forGood && err != nil && !store.Temporary(err) { // its Role may not permit to delete
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
	case errors.Is(err, store.ErrAmbiguous), errors.Is(err, store.ErrNotKept):
		a.state = a.state.MayHaveLease(share)
		return err
	case err != nil:
		return err
	case left > 0:
		a.leaseTaken(other, left)
		return nil
	}
	a.contest.lease, a.contest.until = store.Lease{}, time.Time{}
	a.state = a.state.HasLease(share)
	return nil
}

// leaseTaken takes in that another pod has the Lease that this one is to have. A pod that had noted the slot before it was strict keeps it, unless the
// other one still renews after a while: then that one works, and did not find the receipt.
func (a *Allocator) leaseTaken(other store.Lease, left time.Duration) {
	now, name := a.clock.Now(), store.LeaseName(a.ref.String(), other.ID)
	if seen := a.contest.lease.Version; seen != "" && seen != other.Version && now.Sub(a.work.Resumed()) > doubt {
		a.state = a.state.Sure()
	}
	a.contest.lease, a.contest.until = other, now.Add(left)
	a.state = a.state.LeaseTaken()
	a.contest.again = now.Add(min(left, a.pace.Longer(againTime))) // its pod may let it go before
	a.happened.Tell(event.NotTaken{Reason: fmt.Sprintf("pod %s has the Lease %s", other.Pod, name)})
	if t := a.state; t.Lock.State == receipt.Locks && !t.Taken {
		a.wait.after(now, a.wait.retry.Next(), fmt.Sprintf("pod %s, which has the Lease %s, to let it go", other.Pod, name))
	}
}

// survey lists the others' Leases (T3 in strict mode). This pod must still hold its own Lease.
func (a *Allocator) survey(ctx context.Context) error {
	others, by, err := a.lease.Survey(ctx, a.state.Lock.Share)
	if err != nil || a.lease.Over() {
		return err
	}
	a.state = a.state.SawLeases(others)
	a.compared(by)
	return nil
}
