package agent

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/internal/fields"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Ended reports whether the pod is being deleted and all its main containers have terminated. It reads the pod once. For a pod without a native sidecar it
// returns false, because nothing else outlives the main containers.
//
// Do not poll it: on a normal deletion the kubelet (observed with 1.36) reports the end of the main containers together with the end of the sidecars. So it is
// true only if the main containers ended earlier.
func Ended(ctx context.Context, s *store.Store, namespace, name string) (bool, error) {
	pod, err := s.GetFullPod(ctx, namespace, name)
	if err != nil {
		return false, err
	}
	return pod.GetDeletionTimestamp() != nil && hasSidecar(pod) && terminated(pod), nil
}

func hasSidecar(pod *unstructured.Unstructured) bool {
	return slices.ContainsFunc(fields.Objects(pod.Object, "spec", "initContainers"), func(c map[string]any) bool { return c["restartPolicy"] == "Always" })
}

func terminated(pod *unstructured.Unstructured) bool {
	statuses := fields.Objects(pod.Object, "status", "containerStatuses")
	return len(statuses) >= len(fields.Objects(pod.Object, "spec", "containers")) && !slices.ContainsFunc(statuses, func(c map[string]any) bool {
		_, ended, _ := unstructured.NestedMap(c, "state", "terminated")
		return !ended
	})
}
