package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/page"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// SwapLock replaces the receipt on the pod with next, and returns the pod as written. pod is the pod as last read. The write fails unless the pod still has
// the same UID, receipt and two labels, so a late write cannot undo a newer one. The same request changes the labels and the deletion cost.
//
// wrote is the receipt that the caller wrote last. No program writes its bytes again. If the pod has another receipt, those bytes may have come back, so
// the write fails if anything on the pod has changed.
//
// Errors: those of request.Write, request.ErrNotKept, request.ErrRefused, or receipt.ErrNoToken if the write locks.
func (s *Store) SwapLock(ctx context.Context, pod *metav1.PartialObjectMetadata, wrote string, next receipt.Receipt) (*metav1.PartialObjectMetadata, error) {
	body, err := lockPatch(pod, wrote, next)
	if err != nil {
		return nil, err
	}
	written, err := s.patchPod(ctx, pod, body)
	if err != nil {
		return nil, err
	}
	sent := labelsOf(next)
	sent[receipt.Key] = next.Encode()
	if err := cmp.Or(keptOnPod(sent, written), tokenless(next, written)); err != nil {
		return nil, err
	}
	return written, nil
}

// tokenless returns an error if a lock of the pod cannot have a token.
func tokenless(next receipt.Receipt, pod *metav1.PartialObjectMetadata) error {
	if next.State != receipt.Locks {
		return nil
	}
	if _, err := receipt.TokenOf(pod.ResourceVersion); err != nil {
		return fmt.Errorf("pod %s in namespace %s: %w", pod.Name, pod.Namespace, err)
	}
	return nil
}

func (s *Store) patchPod(ctx context.Context, pod *metav1.PartialObjectMetadata, body []byte) (*metav1.PartialObjectMetadata, error) {
	t := podTarget(pod.Namespace, pod.Name)
	written, err := s.patchMetadata(ctx, t, types.JSONPatchType, body)
	if err != nil {
		return nil, s.judge(ctx, t, err, func(now *metav1.PartialObjectMetadata) error { return differs(pod, now) })
	}
	return written, nil
}

// keptOnPod compares the labels and annotations that were sent with those on the pod. A receipt's labels count even if none were sent.
func keptOnPod(sent map[string]string, written *metav1.PartialObjectMetadata) error {
	stands := map[string]string{}
	for _, key := range append(slices.Collect(maps.Keys(sent)), receipt.IDLabel, receipt.OwnerLabel) {
		of := written.Annotations
		if key == receipt.IDLabel || key == receipt.OwnerLabel {
			of = written.Labels
		}
		if value, there := of[key]; there {
			stands[key] = value
		}
	}
	return request.Kept(sent, stands, fmt.Sprintf("pod %s in namespace %s", written.Name, written.Namespace))
}

// differs returns request.ErrGone if another pod has the name now, and request.ErrConflict if the pod has changed.
func differs(pod, now *metav1.PartialObjectMetadata) error {
	switch {
	case now.UID != pod.UID:
		return request.ErrGone
	case now.ResourceVersion != pod.ResourceVersion:
		return request.ErrConflict
	}
	return nil
}

// labelsOf returns a pod's labels that belong to a receipt: none for a receipt that locks nothing.
func labelsOf(r receipt.Receipt) map[string]string {
	if r.State != receipt.Locks {
		return map[string]string{}
	}
	return map[string]string{receipt.IDLabel: strconv.Itoa(r.Share.ID), receipt.OwnerLabel: assignment.OwnerLabelValue(r.Owner)}
}

// lockPatch replaces the receipt and what belongs to it, if the pod still has the old receipt.
func lockPatch(pod *metav1.PartialObjectMetadata, wrote string, next receipt.Receipt) ([]byte, error) {
	before, there := pod.Annotations[receipt.Key]
	return podPatch(pod, there && before != wrote, lockChanges(pod, next))
}

// lockChanges returns the changes of the receipt, the labels and the deletion cost.
func lockChanges(pod *metav1.PartialObjectMetadata, next receipt.Receipt) []change {
	text, before := next.Encode(), lookup(pod.Annotations, receipt.Key)
	labels := labelsOf(next)
	id, owner := lookup(labels, receipt.IDLabel), lookup(labels, receipt.OwnerLabel)
	oldID, oldCost := lookup(pod.Labels, receipt.IDLabel), lookup(pod.Annotations, assignment.DeletionCostKey)
	cost := costOf(id)
	if cost == nil && oldCost != nil && !same(oldCost, costOf(oldID)) {
		cost = oldCost // another program set it
	}
	if pod.Annotations[assignment.KeepCostKey] == assignment.KeepCost {
		cost = oldCost
	}
	return []change{
		{field: annotationsField, key: receipt.Key, old: before, new: &text, tested: true},
		// A receipt whose labels were removed was no lock for a moment. A late write must not make it look unbroken.
		{field: labelsField, key: receipt.IDLabel, old: oldID, new: id, tested: true},
		{field: labelsField, key: receipt.OwnerLabel, old: lookup(pod.Labels, receipt.OwnerLabel), new: owner, tested: true},
		{field: annotationsField, key: assignment.DeletionCostKey, old: oldCost, new: cost}, // it follows from the receipt
	}
}

// Receipt is a receipt with its pod.
type Receipt struct {
	receipt.Receipt

	Pod string
	UID types.UID
	// Text is the annotation after receipt.Kept, and Version the pod's resourceVersion.
	Text, Version string
	// Deadline is when the pod's grace period ends, nil unless it is being deleted.
	Deadline *metav1.Time
}

// Overdue reports whether the pod has outlived its grace period.
func (r Receipt) Overdue(now time.Time) bool { return r.Deadline != nil && !r.Deadline.After(now) }

// Sought selects the receipts to list.
type Sought struct {
	// IDs are the slots. If empty, all slots are listed.
	IDs []int
	// Former are owners ("Kind/name") that pods come from. Receipts for them are also listed.
	Former []string
	// Since is a pod's resourceVersion: the list must not be older. The API server then answers from its cache, at once. Without Since, the server first
	// asks its store how new the cache must be, and waits up to a tenth of a second for that.
	Since string
}

func (o Sought) selector(ref kinds.Ref) string {
	selector := receipt.OwnerLabel + "=" + assignment.OwnerLabelValue(ref.String())
	if len(o.Former) > 0 {
		owners := make([]string, 0, len(o.Former)+1)
		for _, owner := range append(o.Former, ref.String()) {
			owners = append(owners, assignment.OwnerLabelValue(owner))
		}
		selector = receipt.OwnerLabel + " in (" + strings.Join(owners, ",") + ")"
	}
	switch len(o.IDs) {
	case 0:
		return selector
	case 1:
		return selector + "," + receipt.IDLabel + "=" + strconv.Itoa(o.IDs[0])
	}
	ids := make([]string, 0, len(o.IDs))
	for _, id := range o.IDs {
		ids = append(ids, strconv.Itoa(id))
	}
	return selector + "," + receipt.IDLabel + " in (" + strings.Join(ids, ",") + ")"
}

// Receipts lists the receipts of the owner's live pods that lock something, found by their labels. version is the resourceVersion of the list. It asks for
// one page, because an API server answers that from its cache, and for several pages only if the one is larger than 8 MiB. Errors: *request.ForbiddenError, or
// another error that request.Temporary judges.
func (s *Store) Receipts(ctx context.Context, ref kinds.Ref, which Sought) (out []Receipt, version string, err error) {
	o := metav1.ListOptions{LabelSelector: which.selector(ref), FieldSelector: LivePods}
	if which.Since != "" {
		o.ResourceVersion, o.ResourceVersionMatch = which.Since, metav1.ResourceVersionMatchNotOlderThan
	}
	err = page.Each(ctx, s.Pages, request.Target{GVR: Pods, Namespace: ref.Namespace}, o, 0, func(ctx context.Context, o metav1.ListOptions) (string, error) {
		list, err := s.Metadata.Resource(Pods).Namespace(ref.Namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		if o.Continue == "" {
			out, version = make([]Receipt, 0, len(list.Items)), list.ResourceVersion
		}
		for i := range list.Items {
			pod := &list.Items[i]
			r, _ := receipt.Of(pod, ref.String()) // an unreadable receipt also locks
			if len(which.Former) > 0 {
				r, _ = receipt.Anywhere(pod)
			}
			out = append(out, Receipt{
				Receipt: r, Pod: pod.Name, UID: pod.UID, Text: receipt.Kept(pod.Annotations[receipt.Key]), Version: pod.ResourceVersion, Deadline: pod.DeletionTimestamp,
			})
		}
		return list.Continue, nil
	})
	return out, version, err
}

// costOf returns the deletion cost for an id, or nil without one. Pods without an id get no cost, and pods with a high id a low one. So a scale-down first
// removes pods without an id, then the highest ids, and the other pods keep their ids.
func costOf(id *string) *string {
	if id == nil {
		return nil
	}
	n, err := strconv.Atoi(*id)
	if err != nil {
		return nil
	}
	cost := strconv.Itoa(math.MaxInt32 - n)
	return &cost
}
