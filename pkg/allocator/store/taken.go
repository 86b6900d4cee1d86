package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Take replaces the receipt of a pod whose slot the controller takes, with a lock or a withdrawal. It returns the pod as written. pod is the pod as last
// read. The write fails if anything on the pod has changed. Errors: as of SwapLock. If the error is ErrNoToken, nothing was sent.
func (s *Store) Take(ctx context.Context, pod *metav1.PartialObjectMetadata, next receipt.Receipt) (*metav1.PartialObjectMetadata, error) {
	return s.writeLock(ctx, pod, next, nil, false)
}

// Begin lets the program of a pod begin under a lock that a list of all receipts has confirmed. pod is the pod as last read or written, with the receipt
// that the list showed, and must not be Terminating. next is the same lock, begun. The write sets the annotations, and removes idalloc's gate if gated is
// true. It fails if anything on the pod has changed, and every older write fails after it. Errors: as of SwapLock.
func (s *Store) Begin(
	ctx context.Context, pod *metav1.PartialObjectMetadata, next receipt.Receipt, set map[string]string, gated bool,
) (*metav1.PartialObjectMetadata, error) {
	return s.writeLock(ctx, pod, next, set, gated)
}

// writeLock writes a receipt, its labels and deletion cost, and these annotations. The precondition is the version of the whole pod. The same tests in a
// JSON Patch would cost the API server half as much again, because it would encode and decode the pod twice for them.
func (s *Store) writeLock(
	ctx context.Context, pod *metav1.PartialObjectMetadata, next receipt.Receipt, set map[string]string, gated bool,
) (*metav1.PartialObjectMetadata, error) {
	if err := tokenless(next, pod); err != nil {
		return nil, err
	}
	keys := map[string]map[string]*string{labelsField: {}, annotationsField: {}}
	for _, c := range lockChanges(pod, next) {
		keys[c.field][c.key] = c.new // nil removes the key
	}
	sent := labelsOf(next)
	sent[receipt.Key] = next.Encode()
	for key, value := range set {
		keys[annotationsField][key], sent[key] = &value, value
	}
	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": pod.ResourceVersion, labelsField: keys[labelsField], annotationsField: keys[annotationsField],
	}}
	if gated {
		patch["spec"] = map[string]any{"schedulingGates": nil}
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	written, err := s.patchMetadata(ctx, podTarget(pod.Namespace, pod.Name), types.StrategicMergePatchType, body)
	if err != nil {
		return nil, request.AsRefused(err)
	}
	return written, keptOnPod(sent, written)
}

// Publish sets the annotations of a pod that has begun, if it still has the same receipt. Errors: as of SwapLock.
func (s *Store) Publish(ctx context.Context, pod *metav1.PartialObjectMetadata, set map[string]string) (*metav1.PartialObjectMetadata, error) {
	patch := []operation{
		test("/metadata/uid", pod.UID), test(pointer("metadata", annotationsField, receipt.Key), pod.Annotations[receipt.Key]),
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		patch = append(patch, add(pointer("metadata", annotationsField, key), set[key]))
	}
	if set[receipt.TurnKey] == "" && pod.Annotations[receipt.TurnKey] != "" { // the turn has ended
		patch = append(patch, add(pointer("metadata", annotationsField, receipt.TurnKey), ""))
	}
	body, err := encode(patch)
	if err != nil {
		return nil, err
	}
	return s.patchPod(ctx, pod, body)
}
