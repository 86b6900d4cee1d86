package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

func leaseTarget(ref kinds.Ref, id int) request.Target {
	return request.Target{GVR: slotlease.Resource, Namespace: ref.Namespace, Name: slotlease.Name(ref.String(), id)}
}

// GetLease reads the Lease of a slot. A Lease that does not exist has no Version. Errors: *request.ForbiddenError, or another error that request.Temporary judges.
func (s *Store) GetLease(ctx context.Context, ref kinds.Ref, id int) (slotlease.Lease, error) {
	u, err := s.getWhole(ctx, leaseTarget(ref, id))
	switch {
	case errors.Is(err, request.ErrGone):
		return slotlease.Lease{ID: id, Receipt: receipt.Receipt{Share: receipt.Nothing()}}, nil
	case err != nil:
		return slotlease.Lease{}, err
	}
	return slotlease.Of(u, id), nil
}

// EachLease lists the owner's Leases by a consistent read, and calls do for each. Like Receipts, it first asks for one page, and keeps at most one page of
// at most 8 MiB in memory. If it has to start over, it calls again, because the Leases passed to do before may be gone. Errors: as of GetLease.
func (s *Store) EachLease(ctx context.Context, ref kinds.Ref, again func(), do func(slotlease.Lease)) error {
	o := metav1.ListOptions{LabelSelector: receipt.OwnerLabel + "=" + assignment.OwnerLabelValue(ref.String())}
	return s.eachObject(ctx, request.Target{GVR: slotlease.Resource, Namespace: ref.Namespace}, o, 0, again, func(u *unstructured.Unstructured) {
		id, err := strconv.Atoi(u.GetLabels()[receipt.IDLabel])
		if err == nil && u.GetName() == slotlease.Name(ref.String(), id) { // others belong to another program
			do(slotlease.Of(u, id))
		}
	})
}

// PutLease creates or updates the Lease if it still has next.Version, and returns it as stored. The Lease has no owner reference, like that of a leader
// election, because work under it may continue after the owner is deleted. Errors: those of
// request.Write, request.ErrNotKept if it has a holder, request.ErrRefused, or another error that request.Temporary judges.
func (s *Store) PutLease(ctx context.Context, ref kinds.Ref, next slotlease.Lease) (slotlease.Lease, error) {
	verb := "update"
	if next.Version == "" {
		verb = "create"
	}
	client, sent := s.Dynamic.Resource(slotlease.Resource).Namespace(ref.Namespace), next.Object(ref)
	u, err := request.Write(ctx, leaseTarget(ref, next.ID), verb, func(ctx context.Context) (*unstructured.Unstructured, error) {
		if next.Version == "" {
			return client.Create(ctx, sent, metav1.CreateOptions{FieldManager: assignment.FieldManager})
		}
		return client.Update(ctx, sent, metav1.UpdateOptions{FieldManager: assignment.FieldManager})
	})
	switch {
	case err == nil:
		if next.Holder != "" {
			err = request.Kept(slotlease.Binding(sent), slotlease.Binding(u), fmt.Sprintf("Lease %s in namespace %s", sent.GetName(), ref.Namespace))
		}
		return slotlease.Of(u, next.ID), err
	case apierrors.IsAlreadyExists(err), errors.Is(err, request.ErrGone):
		return slotlease.Lease{}, fmt.Errorf("%w: %w", request.ErrConflict, err)
	}
	return slotlease.Lease{}, request.AsRefused(err)
}

// TryLease asks by a dry run whether the API server would accept a write of the unchanged Lease. Errors: as of PutLease.
func (s *Store) TryLease(ctx context.Context, ref kinds.Ref, l slotlease.Lease) error {
	sent := l.Object(ref)
	o := metav1.UpdateOptions{FieldManager: assignment.FieldManager, DryRun: []string{metav1.DryRunAll}}
	_, err := request.Write(ctx, leaseTarget(ref, l.ID), "update", func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.Dynamic.Resource(slotlease.Resource).Namespace(ref.Namespace).Update(ctx, sent, o)
	})
	return request.AsRefused(err)
}

// DeleteLease deletes the Lease if it still has l.UID and l.Version. A missing Lease is no error. Afterwards, a write of the Lease that is still under way
// can only arrive if it creates the Lease. Errors: as of PutLease.
func (s *Store) DeleteLease(ctx context.Context, ref kinds.Ref, l slotlease.Lease) error {
	uid := types.UID(l.UID)
	only := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &l.Version}}
	t := leaseTarget(ref, l.ID)
	_, err := request.Write(ctx, t, "delete", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Dynamic.Resource(t.GVR).Namespace(t.Namespace).Delete(ctx, t.Name, only)
	})
	if errors.Is(err, request.ErrGone) {
		return nil
	}
	return request.AsRefused(err)
}
