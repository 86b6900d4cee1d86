package allocator

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
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

// otherController reports whether the pod has another controller than before. One that has none was relabelled, and keeps its slot.
func otherController(before, now *metav1.PartialObjectMetadata) bool {
	was, is := metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(now)
	return is != nil && (was == nil || was.UID != is.UID)
}

// waiting is the lock of a pod that waits.
func waiting() duty.Lock { return duty.Lock{State: receipt.Waits, Share: receipt.Nothing()} }
