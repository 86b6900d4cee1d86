package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	for _, c := range list(pod, "spec", "initContainers") {
		if policy, _, _ := unstructured.NestedString(c, "restartPolicy"); policy == "Always" {
			return true
		}
	}
	return false
}

func terminated(pod *unstructured.Unstructured) bool {
	statuses := list(pod, "status", "containerStatuses")
	if len(statuses) < len(list(pod, "spec", "containers")) {
		return false
	}
	for _, c := range statuses {
		if _, found, _ := unstructured.NestedMap(c, "state", "terminated"); !found {
			return false
		}
	}
	return true
}

func list(pod *unstructured.Unstructured, fields ...string) []map[string]any {
	items, _, _ := unstructured.NestedSlice(pod.Object, fields...)
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
