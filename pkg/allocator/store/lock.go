package store

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// SwapLock replaces the receipt on the pod with next, and returns the pod as written. pod is the pod as last read. The write fails unless the
// pod has the same UID and the same receipt still, so a late write cannot undo a newer one. The labels and the deletion cost change in the
// same request.
//
// Errors: ErrConflict, ErrAmbiguous, ErrGone, *ForbiddenError, or the server's own.
func (s *Store) SwapLock(ctx context.Context, pod *metav1.PartialObjectMetadata, next receipt.Receipt) (*metav1.PartialObjectMetadata, error) {
	t := target{Pods, pod.Namespace, pod.Name}
	if err := t.check("patch"); err != nil {
		return nil, err
	}
	text := next.Encode()
	var id, owner *string
	if next.State == receipt.Locks {
		number, whose := strconv.Itoa(next.Share.ID), assignment.OwnerLabelValue(next.Owner)
		id, owner = &number, &whose
	}
	oldID, oldCost := lookup(pod.Labels, receipt.IDLabel), lookup(pod.Annotations, assignment.DeletionCostKey)
	cost := costOf(id)
	if cost == nil && oldCost != nil && !same(oldCost, costOf(oldID)) {
		cost = oldCost // somebody else set it
	}
	var present []string
	if pod.Labels != nil {
		present = append(present, labelsField)
	}
	if pod.Annotations != nil {
		present = append(present, annotationsField)
	}
	body, err := podPatch(string(pod.UID), present, []change{
		{field: annotationsField, key: receipt.Key, old: lookup(pod.Annotations, receipt.Key), new: &text, tested: true},
		// Labels and cost follow from the receipt, so nobody tests their old values.
		{field: annotationsField, key: assignment.DeletionCostKey, old: oldCost, new: cost},
		{field: labelsField, key: receipt.IDLabel, old: oldID, new: id},
		{field: labelsField, key: receipt.OwnerLabel, old: lookup(pod.Labels, receipt.OwnerLabel), new: owner},
	})
	if err != nil {
		return nil, err
	}
	rctx, cancel := requestContext(ctx)
	defer cancel()
	written, err := s.Metadata.Resource(Pods).Namespace(pod.Namespace).Patch(rctx, pod.Name, types.JSONPatchType, body,
		metav1.PatchOptions{FieldManager: assignment.FieldManager})
	switch {
	case err == nil:
		return written, nil
	case t.unanswered(err):
		return nil, fmt.Errorf("%w: %w", ErrAmbiguous, t.wrap("patch", err))
	case apierrors.IsConflict(err):
		return nil, fmt.Errorf("%w: %w", ErrConflict, t.wrap("patch", err))
	case apierrors.IsInvalid(err):
		return nil, s.judgePod(ctx, pod, t.wrap("patch", err))
	}
	return nil, t.wrap("patch", err)
}

// Receipt is a receipt with its pod.
type Receipt struct {
	receipt.Receipt

	Pod string
	UID types.UID
	// Text is the annotation as it stands.
	Text string
}

// Receipts lists the receipts of the owner's live pods that lock something, by a consistent read: those for slot id, or all if id is
// receipt.NoID. It finds them by their labels. RequestTimeout bounds each page. Errors: *ForbiddenError, or another error that Temporary
// judges.
func (s *Store) Receipts(ctx context.Context, ref Ref, id int) ([]Receipt, error) {
	selector := receipt.OwnerLabel + "=" + assignment.OwnerLabelValue(ref.String())
	if id != receipt.NoID {
		selector += "," + receipt.IDLabel + "=" + strconv.Itoa(id)
	}
	var out []Receipt
	err := s.EachPod(ctx, ref.Namespace, metav1.ListOptions{LabelSelector: selector, FieldSelector: LivePods}, func(pod *metav1.PartialObjectMetadata) {
		r, _ := receipt.Of(pod, ref.String()) // one that cannot be read locks, too
		out = append(out, Receipt{Receipt: r, Pod: pod.Name, UID: pod.UID, Text: pod.Annotations[receipt.Key]})
	})
	return out, err
}
