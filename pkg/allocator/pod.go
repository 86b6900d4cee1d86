package allocator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// lockOn returns the lock that the pod's receipt states. A lock that others cannot find by the pod's labels is damaged.
func (a *Allocator) lockOn(pod *metav1.PartialObjectMetadata) duty.Lock {
	r, err := receipt.Of(pod, a.ref.String())
	if err != nil || r.State == receipt.Locks && labelsOf(pod) != [2]string{strconv.Itoa(r.Share.ID), assignment.OwnerLabelValue(r.Owner)} {
		return damaged()
	}
	return duty.LockOf(r)
}

// labelsOf returns the labels by which others find a receipt.
func labelsOf(pod *metav1.PartialObjectMetadata) [2]string {
	return [2]string{pod.Labels[receipt.IDLabel], pod.Labels[receipt.OwnerLabel]}
}

// damaged is the lock of a pod whose receipt another program wrote. The pod itself does not rely on it, however others read it.
func damaged() duty.Lock { return duty.Lock{State: receipt.Unreadable, Share: receipt.Nothing()} }

// receipt returns the receipt on this pod, as far as this process knows.
func (a *Allocator) receipt() receipt.Receipt {
	r, _ := receipt.Of(a.pod, a.ref.String())
	return r
}

// podGone returns the error for a missing pod object.
func (a *Allocator) podGone() error {
	return fmt.Errorf("%w (%s, UID %s): this process must not act under an id any more and should end", ErrPodGone, a.o.Pod, a.o.PodUID)
}

// getPod reads this pod. The API server rejects the token of a deleted pod, so an Unauthorized error means that the pod is gone if the stream agrees.
// Errors: ErrPodGone, or as of store.Store.
func (a *Allocator) getPod(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	pod, err := a.o.Store.GetPod(ctx, a.o.Namespace, a.o.Pod)
	switch {
	case errors.Is(err, request.ErrGone), err == nil && pod.UID != a.o.PodUID, apierrors.IsUnauthorized(err) && a.unseen():
		return nil, a.podGone()
	}
	return pod, err
}

// unseen reports whether the stream of this pod shows that it is gone.
func (a *Allocator) unseen() bool {
	stream := a.contact.Pod()
	if stream == nil {
		return false
	}
	pod, there := stream.Get(a.o.Pod)
	return !there || pod.UID != a.o.PodUID
}

// readPod reads this pod and updates the lock state from its receipt.
func (a *Allocator) readPod(ctx context.Context) error {
	pod, err := a.getPod(ctx)
	if err != nil {
		return err
	}
	before := a.pod
	a.pod = pod
	defer a.heard()
	text := pod.Annotations[receipt.Key]
	switch same, late := text == a.wrote && labelsOf(pod) == labelsOf(before), slices.Contains(a.failed, text); {
	case a.state.Lock.State == receipt.Unreadable && a.wrote == "": // no lock of this pod is unbroken before its next write
		a.state = a.state.Read(damaged())
	case same && a.state.Renewed:
		a.state.Known = true // it was there all the time
	case a.wrote == "", same, late: // this process starts, or a write failed
		if late {
			a.wrote = text
		}
		lock := a.lockOn(pod)
		if same && a.conflict { // other bytes probably stood there for a moment
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

// hurt is called when another program has changed the receipt of this process. Regardless of the present receipt, the lock was gone for a moment.
func (a *Allocator) hurt() {
	a.happened.Tell(event.Damaged{
		// Event: a pod's receipt or labels were changed or removed. The pod stops its work and takes its id again, and has none for a moment. A
		// receipt that cannot be read locks its slot.
		// Do: stop the writer of the pods' annotations.
		About: a.source.Facts().About, Reason: "ReceiptDamaged",
		Detail: "annotation " + receipt.Key + " or the labels of pod " + a.o.Pod + " were changed or removed: its work stops, and the id is taken again",
	})
	a.state, a.wrote, a.failed = a.state.Read(damaged()), "", nil
	a.damage.Again(a.clock.Now())
	a.wait.after(a.clock.Now(), a.damage.Damping(), "its next try: the receipt or the labels of this pod were changed")
}

// settled reports whether this process holds nothing any more of the owner that it leaves. A damaged receipt that it may not replace under this owner locks
// what it locks until the process writes one under the next owner.
func (a *Allocator) settled() bool {
	t := a.state
	locks := t.Lock.State == receipt.Locks || t.Lock.State == receipt.Unreadable && a.source.Facts().MayWrite
	return t.Known && !locks && t.Stopping.Empty() && t.Working.Empty() && t.Lease.Empty()
}
