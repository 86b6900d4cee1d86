package gc

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Pod labels and annotations that give a pod an ordinal.
const (
	PodIndexLabel        = "apps.kubernetes.io/pod-index"
	CompletionIndexLabel = "batch.kubernetes.io/job-completion-index"
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
		Ordinal: ordinal(owner, meta),
		Receipt: receipt,
	}
	if end := meta.GetDeletionTimestamp(); end != nil {
		pod.Terminating, pod.Deadline = true, end.Time // Kubernetes adds the grace period
	}
	if controller := metav1.GetControllerOfNoCopy(meta); controller != nil {
		pod.Controller = string(controller.UID)
	}
	return pod, err
}

// ordinal counts from 0: a StatefulSet's index less its start, or a Job's completion index.
func ordinal(owner store.Owner, meta metav1.Object) int {
	var text string
	start := 0
	switch owner.Kind {
	case store.StatefulSet:
		start = owner.OrdinalStart
		// The name ends with the same number; the label exists since Kubernetes 1.28.
		text = cmp.Or(meta.GetLabels()[PodIndexLabel], meta.GetName()[strings.LastIndexByte(meta.GetName(), '-')+1:])
	case store.Job:
		text = cmp.Or(meta.GetLabels()[CompletionIndexLabel], meta.GetAnnotations()[CompletionIndexLabel])
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < start {
		return plan.NoOrdinal
	}
	return n - start
}
