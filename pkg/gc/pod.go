package gc

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// PodOf reads from a live pod what a plan needs to know of it. owned says that the owner's selector matches it. The error says what is
// wrong with its receipt; one with a bad epoch still locks its slot, and is there beside the error.
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
		pod.Terminating, pod.Deadline = true, end.Time // Kubernetes adds the grace period
	}
	if controller := metav1.GetControllerOfNoCopy(meta); controller != nil {
		pod.Controller = string(controller.UID)
	}
	return pod, err
}
