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
)

// The keys of pods for which the controller takes slots.
const (
	// AssignLabel says who takes a slot for the pod: AssignController, or receipt.ByAgent for a process that the controller plans for.
	AssignLabel      = receipt.AssignLabel
	AssignController = receipt.ByController
	// Gate is the scheduling gate behind which the pod waits for its id.
	Gate = "idalloc.dev/id"
	// IDKey, CountKey, StartCountKey and IdentityKey are the annotations that become the container's environment and files.
	IDKey         = "idalloc.dev/id"
	CountKey      = "idalloc.dev/count"
	StartCountKey = "idalloc.dev/start-count"
	// TurnKey is what a pod had when its turn to restart with another count began, until the turn has ended.
	TurnKey     = "idalloc.dev/turn"
	IdentityKey = "idalloc.dev/identity"
)

// Take replaces the receipt of a pod for which the controller takes: by a lock, or by a withdrawal. It returns the pod as written. pod is the pod as last
// read. The write fails if anything at all has changed on the pod. Errors: as of SwapLock. With ErrNoToken nothing was sent.
func (s *Store) Take(ctx context.Context, pod *metav1.PartialObjectMetadata, next receipt.Receipt) (*metav1.PartialObjectMetadata, error) {
	return s.writeLock(ctx, pod, next, nil, false)
}

// Begin lets the program of a pod begin under the lock that a list of all receipts confirmed. pod is the pod as last read or written, with the receipt
// that the list showed, and not Terminating. next is the same lock, begun. The write sets the annotations, and takes idalloc's gate away if gated is
// set. It fails if anything at all has changed on the pod, and every older write fails after it. Errors: as of SwapLock.
func (s *Store) Begin(
	ctx context.Context, pod *metav1.PartialObjectMetadata, next receipt.Receipt, set map[string]string, gated bool,
) (*metav1.PartialObjectMetadata, error) {
	return s.writeLock(ctx, pod, next, set, gated)
}

// writeLock writes a receipt, what goes with it, and these annotations. The precondition is the version of the whole pod. A JSON Patch whose tests say the
// same costs the API server half as much again, because that encodes and decodes the pod twice for it.
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
	written, err := s.patchMetadata(ctx, target{Pods, pod.Namespace, pod.Name}, types.StrategicMergePatchType, body)
	if err != nil {
		return nil, asRefused(err)
	}
	return written, keptOnPod(sent, written)
}

// Publish sets the annotations of a pod that has begun, if it has the same receipt still. Errors: as of SwapLock.
func (s *Store) Publish(ctx context.Context, pod *metav1.PartialObjectMetadata, set map[string]string) (*metav1.PartialObjectMetadata, error) {
	patch := []operation{
		test("/metadata/uid", pod.UID), test(pointer("metadata", annotationsField, receipt.Key), pod.Annotations[receipt.Key]),
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		patch = append(patch, add(pointer("metadata", annotationsField, key), set[key]))
	}
	if set[TurnKey] == "" && pod.Annotations[TurnKey] != "" { // the turn has ended
		patch = append(patch, add(pointer("metadata", annotationsField, TurnKey), ""))
	}
	body, err := encode(patch)
	if err != nil {
		return nil, err
	}
	return s.patchPod(ctx, pod, body)
}
