package agent

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Ended reports, by one live read, whether the pod is being deleted and every main container of it
// has terminated. Only a native sidecar can outlive the main containers; for others it is false.
//
// It is not worth waiting for: on a normal deletion the kubelet (seen on 1.36) reports the main
// containers' end together with the sidecars' own, so this is true only when they ended before.
func Ended(ctx context.Context, s *store.Store, namespace, name string) (bool, error) {
	pod, err := s.GetFullPod(ctx, namespace, name)
	if err != nil {
		return false, err
	}
	return pod.GetDeletionTimestamp() != nil && hasSidecar(pod) && terminated(pod), nil
}

// hostNetwork reports, by one live read, whether the pod shares its node's network. A pod that does not exist any more may have.
func hostNetwork(ctx context.Context, s *store.Store, namespace, name string) (bool, error) {
	pod, err := s.GetFullPod(ctx, namespace, name)
	if errors.Is(err, store.ErrGone) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	shares, _, err := unstructured.NestedBool(pod.Object, "spec", "hostNetwork")
	return shares, err
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
