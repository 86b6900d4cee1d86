package store

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// The keys of pods for which the controller takes slots.
const (
	// AssignLabel says who takes a slot for the pod: AssignController, or receipt.ByAgent for a process that the controller plans for.
	AssignLabel      = receipt.AssignLabel
	AssignController = receipt.ByController
	// Gate is the scheduling gate behind which the pod waits for its id.
	Gate = "idalloc.dev/id"
	// IDKey, CountKey and IdentityKey are the annotations that become the container's environment and files.
	IDKey       = "idalloc.dev/id"
	CountKey    = "idalloc.dev/count"
	IdentityKey = "idalloc.dev/identity"
)

// Begin lets the program of a pod begin under the lock that a list of all receipts confirmed. text are the bytes of the receipt that the list showed.
// next is the same lock, begun, with bytes of its own: so every older write fails its test. The write sets the annotations, and takes the gate
// away if gated is set: it has to be the pod's only one. It fails if the pod is Terminating. Errors: as of SwapLock.
func (s *Store) Begin(
	ctx context.Context, pod *metav1.PartialObjectMetadata, text string, next receipt.Receipt, set map[string]string, gated bool,
) (*metav1.PartialObjectMetadata, error) {
	encoded := next.Encode()
	ops := []operation{
		test("/metadata/uid", pod.UID), test("/metadata/deletionTimestamp", nil),
		test(pointer("metadata", annotationsField, receipt.Key), text), add(pointer("metadata", annotationsField, receipt.Key), encoded),
	}
	sent := labelsOf(next)
	if id := lookup(sent, receipt.IDLabel); id != nil {
		ops = append(ops, test(pointer("metadata", labelsField, receipt.IDLabel), *id),
			add(pointer("metadata", annotationsField, assignment.DeletionCostKey), *costOf(id)))
	}
	sent[receipt.Key] = encoded
	for _, key := range []string{IDKey, CountKey, IdentityKey} {
		ops = append(ops, add(pointer("metadata", annotationsField, key), set[key]))
		sent[key] = set[key]
	}
	if gated {
		ops = append(ops, test("/spec/schedulingGates", []map[string]string{{"name": Gate}}), remove("/spec/schedulingGates"))
	}
	body, err := encode(ops)
	if err != nil {
		return nil, err
	}
	written, err := s.patchPod(ctx, pod, body)
	if err == nil {
		err = keptOnPod(sent, written)
	}
	return written, err
}

// Publish sets the annotations of a pod that has begun, if it has this receipt still. Errors: as of SwapLock.
func (s *Store) Publish(ctx context.Context, pod *metav1.PartialObjectMetadata, text string, set map[string]string) (*metav1.PartialObjectMetadata, error) {
	body, err := encode([]operation{
		test("/metadata/uid", pod.UID), test(pointer("metadata", annotationsField, receipt.Key), text),
		add(pointer("metadata", annotationsField, CountKey), set[CountKey]), add(pointer("metadata", annotationsField, IdentityKey), set[IdentityKey]),
	})
	if err != nil {
		return nil, err
	}
	return s.patchPod(ctx, pod, body)
}
