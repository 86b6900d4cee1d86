package allocator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// doubt is for how long a process that resumes lists again before it believes that another receipt stays.
const doubt = 10 * time.Second

// againTime is how long a process waits before it takes partitions again that another pod locked, too, and before it looks again at a Lease of
// another pod.
const againTime = 2 * time.Second

// errOtherOwner means that another object owns this pod now.
var errOtherOwner = errors.New("idalloc: another object owns the pod")

// do carries a duty out. Errors are for afterError.
func (a *Allocator) do(ctx context.Context, next duty.Duty, at time.Time) error {
	a.contact.busy()
	switch next.Do {
	case duty.Look:
		return a.look(ctx)
	case duty.Read:
		return a.readPod(ctx)
	case duty.Secure:
		return a.secure(ctx, next.Share)
	case duty.Write:
		return a.write(ctx, next.Lock)
	case duty.List:
		return a.list(ctx)
	case duty.Survey:
		return a.survey(ctx)
	case duty.Begin:
		a.begin(next.Share)
	case duty.Stop:
		a.stop(next.Share) //nolint:contextcheck // what it starts ends with the streams
	case duty.CallOff:
		a.callOff()
	case duty.Judge:
		return a.judge(ctx)
	case duty.Plan:
		return a.plan(ctx)
	case duty.Rest:
		return a.rest(ctx, next, at)
	}
	return nil
}

// lockOn returns what a pod's receipt says. A lock that others do not find by the pod's labels is damaged.
func (a *Allocator) lockOn(pod *metav1.PartialObjectMetadata) duty.Lock {
	r, err := receipt.Of(pod, a.ref.String())
	if err != nil || r.State == receipt.Locks && labelsOf(pod) != [2]string{strconv.Itoa(r.Share.ID), assignment.OwnerLabelValue(r.Owner)} {
		return damaged()
	}
	return duty.Lock{State: r.State, Share: r.Share}
}

// labelsOf returns the labels by which others find a receipt.
func labelsOf(pod *metav1.PartialObjectMetadata) [2]string {
	return [2]string{pod.Labels[receipt.IDLabel], pod.Labels[receipt.OwnerLabel]}
}

// damaged is the lock of a pod whose receipt somebody else wrote. It is no lock for the pod itself, whatever others read in it.
func damaged() duty.Lock { return duty.Lock{State: receipt.Unreadable, Share: receipt.Nothing()} }

// receipt returns what stands on the own pod, as far as this process knows.
func (a *Allocator) receipt() receipt.Receipt {
	r, _ := receipt.Of(a.pod, a.ref.String())
	return r
}

// readPod reads the own pod.
func (a *Allocator) readPod(ctx context.Context) error {
	pod, err := a.o.Store.GetPod(ctx, a.o.Namespace, a.o.Pod)
	if errors.Is(err, store.ErrGone) || err == nil && pod.UID != a.o.PodUID {
		return fmt.Errorf("%w (%s, UID %s): this process must not act under an id any more and should end", ErrPodGone, a.o.Pod, a.o.PodUID)
	}
	if err != nil {
		return err
	}
	before := a.pod
	a.pod = pod
	text := pod.Annotations[receipt.Key]
	switch same := text == a.wrote && labelsOf(pod) == labelsOf(before); {
	case a.tenure.Lock.State == receipt.Unreadable && a.wrote == "": // no lock of this pod is unbroken before its next write
		a.tenure, a.work.doubtful = a.tenure.Read(damaged()), false
	case a.wrote == "" || a.work.doubtful: // a start, or the outcome of a write without an answer
		a.tenure, a.work.doubtful, a.wrote = a.tenure.Read(a.lockOn(pod)), false, ""
		a.work.resumes(a.clock.Now())
	case same:
		a.tenure.Known = true // it was there all the time
	default:
		a.happened.Tell(event.Damaged{
			About: a.view.about(), Reason: "ReceiptDamaged",
			Detail: "somebody else changed or removed annotation " + receipt.Key + " or the labels of pod " + a.o.Pod + ": its work stops, and the id is taken again",
		})
		a.tenure, a.wrote = a.tenure.Read(damaged()), "" // whatever it says, it was gone for a moment
	}
	if otherController(before, pod) {
		a.suspect()
	}
	return nil
}

// otherController reports whether the pod has another controller than before. One that has none was relabelled, and keeps its slot.
func otherController(before, now *metav1.PartialObjectMetadata) bool {
	was, is := metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(now)
	return is != nil && (was == nil || was.UID != is.UID)
}

// write swaps the receipt (T2).
func (a *Allocator) write(ctx context.Context, lock duty.Lock) error {
	next := receipt.Receipt{
		UID: string(a.o.PodUID), Owner: a.ref.String(), State: lock.State, Share: lock.Share, Write: receipt.Draw(), Rank: a.work.rank(lock),
		HandsOver: a.o.HandsOver && lock.State == receipt.Locks, Strict: a.tenure.Strict && lock.State == receipt.Locks,
	}
	before := a.tenure.Lock
	pod, err := a.o.Store.SwapLock(ctx, a.pod, next)
	if err != nil {
		a.tenure = a.tenure.Lost()
		a.work.doubtful = a.work.doubtful || errors.Is(err, store.ErrAmbiguous) || errors.Is(err, store.ErrNotKept)
		if errors.Is(err, store.ErrGone) {
			return a.readPod(ctx)
		}
		return err
	}
	a.pod, a.wrote = pod, next.Encode()
	a.tenure = a.tenure.Wrote(lock)
	a.work.wrote(before, lock, tokenOf(pod.ResourceVersion))
	a.retry.Reset()
	return nil
}

// list lists the others' receipts (T3). It has to show the own one as it was written.
func (a *Allocator) list(ctx context.Context) error {
	mine := a.tenure.Lock.Share
	id := mine.ID
	if mine.Of > 0 {
		id = receipt.NoID // partitions may be locked under any slot
	}
	receipts, err := a.o.Store.Receipts(ctx, a.ref, id)
	if err != nil {
		return err
	}
	var others duty.Others
	own, by := false, ""
	for _, r := range receipts {
		switch {
		case r.UID == a.o.PodUID:
			own = r.Text == a.wrote
		case a.tenure.Strict && r.Strict && r.State == receipt.Locks: // its Lease says so
		default:
			locked := r.LocksOf(mine.Partitions)
			if slot := r.LocksSlot(mine.ID); slot || !locked.Empty() {
				others.Slot, by = others.Slot || slot, r.Pod
			}
			others.Partitions = others.Partitions.Union(locked)
		}
	}
	if !own {
		a.tenure = a.tenure.Lost()
		return fmt.Errorf("%w: the receipt on pod %s, or its labels, is not in the list of receipts as it was written", store.ErrNotKept, a.o.Pod)
	}
	a.tenure = a.tenure.Saw(others)
	a.compared(by)
	return nil
}

// compared takes in what T3 has shown, and a pod that locks something of the share, too; empty if there is none. A pod that withdraws from its
// slot tries again at a random time, because the other one may do the same. One that resumes lists again for a while.
func (a *Allocator) compared(by string) {
	switch t := a.tenure; {
	case by == "":
		if !t.Working.Empty() && !t.Stopping && t.Lock.Share.Covers(t.Working) && (t.Surveyed || !t.Strict) && !t.Others.Any() {
			a.work.begun(t.Working)
		}
	case !t.Doubts && !t.Others.Slot:
		a.known.Again = a.clock.Now().Add(a.pace.Longer(againTime))
	default:
		a.happened.Tell(event.NotTaken{Reason: "pod " + by + " locks it, too"})
		if t.Doubts && a.clock.Since(a.work.resumed) <= doubt {
			a.later(a.retry.Next())
			return
		}
		a.tenure = t.Sure()
		a.known.Again = a.clock.Now().Add(a.retry.Next())
	}
}

// begin begins the work on the share.
func (a *Allocator) begin(share receipt.Share) {
	if a.lease.Over() {
		return // hear takes that in
	}
	a.tenure = a.tenure.Begun(share)
	a.retry.Reset()
	a.work.begun(share)
}

// rest waits for more.
func (a *Allocator) rest(ctx context.Context, why duty.Duty, at time.Time) error {
	a.listen(why) //nolint:contextcheck // what it starts ends with the streams
	a.explain(why)
	a.view.fresh = false
	now := a.clock.Now()
	for _, alarm := range a.alarms() {
		if alarm.After(now) && (at.IsZero() || alarm.Before(at)) {
			at = alarm
		}
	}
	var timer <-chan time.Time
	if !at.IsZero() {
		t := a.clock.NewTimer(max(0, at.Sub(now)))
		defer t.Stop()
		timer = t.C()
	}
	a.contact.atRest()
	defer a.contact.busy()
	select {
	case <-ctx.Done():
	case <-timer:
	case <-a.contact.wake:
	case err := <-a.work.stops:
		a.stopEnded(err)
	case paused := <-a.o.Pause:
		a.work.pause(paused)
	}
	return a.contact.watchDenied()
}

// partitionsOf is the part of a set below a number.
func partitionsOf(set placement.Set, count int) placement.Set {
	return set.Intersect(placement.Between(0, count-1))
}
