package gc

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// PodOf returns what a plan needs to know about a live pod. owned says that the owner's selector matches it. now is the
// caller's time, against which the epoch of the receipt is checked. The error says what is wrong with the receipt. The
// returned pod is valid in any case. If the error is assignment.ErrBadEpoch, it has the receipt, which still locks its slot.
func PodOf(owner store.Owner, meta metav1.Object, owned bool, now time.Time) (plan.Pod, error) {
	receipt, err := assignment.ReceiptOf(meta.GetAnnotations(), string(meta.GetUID()), owner.String(), owner.Horizon(now))
	if errors.Is(err, assignment.ErrForeignReceipt) {
		err = nil
	}
	pod := plan.Pod{
		Name:    meta.GetName(),
		UID:     string(meta.GetUID()),
		Created: meta.GetCreationTimestamp().Time,
		Owned:   owned,
		Ordinal: plan.NoOrdinal,
		Receipt: receipt,
	}
	if n, ok := owner.Ordinal(meta); ok {
		pod.Ordinal = n
	}
	if end := meta.GetDeletionTimestamp(); end != nil {
		pod.Terminating, pod.Deadline = true, end.Time // Kubernetes has added the grace period to this time
		if grace := meta.GetDeletionGracePeriodSeconds(); grace != nil {
			pod.Grace = time.Duration(*grace) * time.Second
		}
	}
	if controller := metav1.GetControllerOfNoCopy(meta); controller != nil {
		pod.Controller = string(controller.UID)
	}
	return pod, err
}

// LostIn returns how long it is until the pod is lost, for somebody who has known it to be Terminating for this long by a clock of his
// own. It is 0 or less if the pod is lost. ok is false if the pod cannot be lost: it is not Terminating, or nothing is known to
// stop its work when it has no contact.
//
// The pod's deletionTimestamp is not asked, because it is another clock's. Who has known of the deletion for the grace period knows that the
// period is over, whatever any wall clock shows.
func LostIn(pod plan.Pod, known time.Duration) (in time.Duration, ok bool) {
	if !pod.MayBeLost() {
		return 0, false
	}
	return pod.Grace + plan.LostAfter - known, true
}
