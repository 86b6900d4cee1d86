package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// GetPod reads a pod's metadata. Errors: ErrGone, *ForbiddenError, or another that Temporary judges.
func (s *Store) GetPod(ctx context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	t := target{Pods, namespace, name}
	if err := t.check("get"); err != nil {
		return nil, err
	}
	ctx, cancel := requestContext(ctx)
	defer cancel()
	pod, err := s.Metadata.Resource(Pods).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, t.wrap("get", err)
	}
	return pod, nil
}

// SwapReceipt replaces the receipt on pod, as last read, with next (nil removes it) and returns the
// pod as written. The receipt that was read is part of the compare-and-swap, so that a late write
// cannot undo a newer one. Labels and annotation change together. With renew, a receipt that is there
// already is written in other bytes of the same meaning: a late write of an earlier process of this
// pod then fails its test. Errors: as of Commit.
func (s *Store) SwapReceipt(ctx context.Context, pod *metav1.PartialObjectMetadata, next *assignment.Receipt, renew bool) (*metav1.PartialObjectMetadata, error) {
	t := target{Pods, pod.Namespace, pod.Name}
	if err := t.check("patch"); err != nil {
		return nil, err
	}
	label, owner, receipt, cost := receiptValues(next)
	oldReceipt, oldLabel := lookup(pod.Annotations, assignment.ReceiptKey), lookup(pod.Labels, assignment.InstanceIDLabel)
	oldOwner := lookup(pod.Labels, assignment.OwnerLabel)
	oldCost := lookup(pod.Annotations, assignment.DeletionCostKey)
	if cost == nil && oldCost != nil && !same(oldCost, costOf(oldLabel)) {
		cost = oldCost // somebody else's
	}
	if receipt != nil && oldReceipt != nil && strings.TrimRight(*oldReceipt, blanks) == *receipt {
		*receipt = *oldReceipt
		if renew {
			*receipt = strings.TrimRight(*oldReceipt, blanks) + nonce()
		}
	}
	if same(label, oldLabel) && same(owner, oldOwner) && same(receipt, oldReceipt) && same(cost, oldCost) {
		return pod, nil
	}
	var present []string
	if pod.Labels != nil {
		present = append(present, "labels")
	}
	if pod.Annotations != nil {
		present = append(present, "annotations")
	}
	body, err := podPatch(string(pod.UID), present, []change{
		{field: "annotations", key: assignment.ReceiptKey, old: oldReceipt, new: receipt, tested: true},
		// Labels and cost are set to what belongs to the receipt whatever they were.
		{field: "annotations", key: assignment.DeletionCostKey, old: oldCost, new: cost},
		{field: "labels", key: assignment.InstanceIDLabel, old: oldLabel, new: label},
		{field: "labels", key: assignment.OwnerLabel, old: oldOwner, new: owner},
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

func (s *Store) judgePod(ctx context.Context, pod *metav1.PartialObjectMetadata, refused error) error {
	now, err := s.GetPod(ctx, pod.Namespace, pod.Name)
	switch {
	case errors.Is(err, ErrGone):
		return fmt.Errorf("%w: %w", ErrGone, refused)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case now.UID != pod.UID:
		return fmt.Errorf("%w: %w", ErrGone, refused)
	case !maps.Equal(now.Labels, pod.Labels) || !maps.Equal(now.Annotations, pod.Annotations):
		return ErrConflict
	}
	return refused
}

// blanks are white space, which is free in JSON.
const blanks = " \t"

// nonce returns 24 random blanks: bytes that a receipt of the same meaning never had before.
func nonce() string {
	b := make([]byte, 24)
	bits := rand.Uint32() //nolint:gosec // it has to differ, not to be secret
	for i := range b {
		b[i] = blanks[bits>>i&1]
	}
	return string(b)
}

// receiptValues returns the labels, the receipt and the deletion cost that belong together. The cost
// makes a scale-down remove the highest ids first, so that the survivors need not move, and pods
// without an id, which have none, before all others.
func receiptValues(r *assignment.Receipt) (label, owner, receipt, cost *string) {
	if r == nil {
		return nil, nil, nil, nil
	}
	text := r.Encode()
	if !r.Locks() {
		return nil, nil, &text, nil
	}
	id, whose := strconv.Itoa(r.ID), assignment.OwnerLabelValue(r.Owner)
	return &id, &whose, &text, costOf(&id)
}

// costOf returns the deletion cost that goes with an id, nil with none.
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

func lookup(m map[string]string, key string) *string {
	if v, ok := m[key]; ok {
		return &v
	}
	return nil
}

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// pageSize is how many pods a list asks for at a time, as client-go's own lists do. A pod's metadata takes
// kilobytes, most of which nobody needs.
const pageSize = 500

// EachPod lists pods' metadata with a consistent read and shows do each pod, page by page, so that no more than
// one page is in memory. The first page, which names no resourceVersion, is of a moment after the call, and
// the token that continues it stays at that moment: together the pages are one consistent list. If the server forgot
// that moment before the last page, the list begins again, whole: do is shown pods again then, and perhaps
// was shown one that is gone. Errors: *ForbiddenError, or another that Temporary judges.
func (s *Store) EachPod(ctx context.Context, namespace string, o metav1.ListOptions, do func(*metav1.PartialObjectMetadata)) error {
	return eachPage(ctx, namespace, o, func(ctx context.Context, o metav1.ListOptions) (string, error) {
		list, err := s.Metadata.Resource(Pods).Namespace(namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		return list.Continue, nil
	})
}

// EachFullPod is EachPod with whole pods.
func (s *Store) EachFullPod(ctx context.Context, namespace string, o metav1.ListOptions, do func(*unstructured.Unstructured)) error {
	return eachPage(ctx, namespace, o, func(ctx context.Context, o metav1.ListOptions) (string, error) {
		list, err := s.Dynamic.Resource(Pods).Namespace(namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		return list.GetContinue(), nil
	})
}

// eachPage reads pages until there is no token for one more.
func eachPage(ctx context.Context, namespace string, o metav1.ListOptions, read func(context.Context, metav1.ListOptions) (next string, err error)) error {
	o.Limit, o.Continue = pageSize, ""
	for {
		request, cancel := requestContext(ctx)
		next, err := read(request, o)
		cancel()
		switch {
		case apierrors.IsResourceExpired(err) && o.Continue != "":
			o.Limit, o.Continue = 0, ""
		case err != nil:
			return target{gvr: Pods, namespace: namespace}.wrap("list", err)
		case next == "":
			return nil
		default:
			o.Continue = next
		}
	}
}

// GetFullPod reads a pod with its status. Errors: as of GetPod.
func (s *Store) GetFullPod(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	t := target{Pods, namespace, name}
	if err := t.check("get"); err != nil {
		return nil, err
	}
	ctx, cancel := requestContext(ctx)
	defer cancel()
	pod, err := s.Dynamic.Resource(Pods).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, t.wrap("get", err)
	}
	return pod, nil
}

// GetMetadata reads an object's metadata. Errors: as of Get.
func (s *Store) GetMetadata(ctx context.Context, ref Ref) (*metav1.PartialObjectMetadata, error) {
	t := target{ref.GVR(), ref.Namespace, ref.Name}
	if err := t.check("get"); err != nil {
		return nil, err
	}
	ctx, cancel := requestContext(ctx)
	defer cancel()
	object, err := s.Metadata.Resource(ref.GVR()).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, t.wrap("get", err)
	}
	return object, nil
}
