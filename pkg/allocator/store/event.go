package store

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// Warn leaves a Warning Event on the owner, reported by pod. Errors: *ForbiddenError, or the server's own.
func (s *Store) Warn(ctx context.Context, ref Ref, pod, reason, message string) error {
	ctx, cancel := requestContext(ctx)
	defer cancel()
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	now := s.Clock.Now()
	stamp := now.UTC().Format(time.RFC3339)
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Event",
		"metadata":   map[string]any{"name": fmt.Sprintf("%s.%x", ref.Name, now.UnixNano()), "namespace": ref.Namespace},
		"involvedObject": map[string]any{
			"apiVersion": ref.APIVersion, "kind": ref.Kind, "namespace": ref.Namespace, "name": ref.Name,
		},
		"type":               "Warning",
		"reason":             reason,
		"message":            message,
		"count":              int64(1),
		"firstTimestamp":     stamp,
		"lastTimestamp":      stamp,
		"reportingComponent": "idalloc.dev/allocator",
		"reportingInstance":  pod,
		"source":             map[string]any{"component": "idalloc"},
	}}
	_, err := s.Dynamic.Resource(events).Namespace(ref.Namespace).Create(ctx, event, metav1.CreateOptions{FieldManager: assignment.FieldManager})
	return target{gvr: events, namespace: ref.Namespace}.wrap("create", err)
}
