package store

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// desired returns the number of pods in the spec of an owner, nil for Kubernetes' default.
func desired(ref kinds.Ref, s *spec) *int {
	if ref.Of().Count == kinds.ByParallelism {
		return s.Parallelism
	}
	return s.Replicas
}

// Ordinal returns the index of one of the owner's pods, counted from 0. ok is false if the pod has none.
func (o Owner) Ordinal(pod metav1.Object) (n int, ok bool) {
	n, ok = o.Index(pod)
	n -= o.OrdinalStart
	return n, ok && n >= 0
}

// Condemned reports whether Kubernetes will remove this pod of the owner, because the owner was scaled down or its ordinals begin elsewhere.
func (o Owner) Condemned(pod metav1.Object) bool {
	n, ok := o.Index(pod)
	return ok && o.Of().Condemns && (n < o.OrdinalStart || n >= o.OrdinalStart+o.Count)
}

// KeptByCondemned explains that a pod waits for a slot kept by a condemned pod, and what to do.
func (o Owner) KeptByCondemned() string {
	return fmt.Sprintf("%s has the ordinals %d to %d now, and pods with other ordinals keep slots that they cannot hand over; with the policy OrderedReady "+
		"Kubernetes removes these only when all others are Ready: delete them, and they do not come back", o.Ref, o.OrdinalStart, o.OrdinalStart+o.Count-1)
}
