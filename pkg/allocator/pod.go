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
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// lockOn returns what a pod's receipt says. A lock that others do not find by the pod's labels is damaged.
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

// damaged is the lock of a pod whose receipt another program wrote. It is no lock for the pod itself, whatever others read in it.
func damaged() duty.Lock { return duty.Lock{State: receipt.Unreadable, Share: receipt.Nothing()} }

// receipt returns what stands on the own pod, as far as this process knows.
func (a *Allocator) receipt() receipt.Receipt {
	r, _ := receipt.Of(a.pod, a.ref.String())
	return r
}

// podGone is the error of a process whose pod object is gone.
func (a *Allocator) podGone() error {
	return fmt.Errorf("%w (%s, UID %s): this process must not act under an id any more and should end", ErrPodGone, a.o.Pod, a.o.PodUID)
}

// getPod reads the own pod. The API server does not accept the token of a pod that is gone, so if the stream says that it is gone, that is
// the answer. Errors: ErrPodGone, or as of store.Store.
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
	a.pod = pod
	defer a.heard()
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

// hurt is called when another program has changed the receipt of this process. Whatever stands there now, the lock was gone for a moment.
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

// settled reports whether this process has nothing any more of an owner that it leaves.
func (a *Allocator) settled() bool {
	t := a.state
	return t.Known && t.Stopping.Empty() && t.Lock.State != receipt.Locks && t.Lock.State != receipt.Unreadable && t.Working.Empty() && t.Lease.Empty()
}
