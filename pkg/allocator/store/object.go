package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// targetOf is the target of a request about an owner.
func targetOf(r kinds.Ref) request.Target {
	return request.Target{GVR: r.GVR(), Namespace: r.Namespace, Name: r.Name}
}

func podTarget(namespace, name string) request.Target {
	return request.Target{GVR: Pods, Namespace: namespace, Name: name}
}

// GetMetadata reads the metadata of an object. Errors: as of GetOwner.
func (s *Store) GetMetadata(ctx context.Context, ref kinds.Ref) (*metav1.PartialObjectMetadata, error) {
	return s.getMetadata(ctx, targetOf(ref))
}

func (s *Store) getWhole(ctx context.Context, t request.Target) (*unstructured.Unstructured, error) {
	return request.Send(ctx, t, "get", func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.Dynamic.Resource(t.GVR).Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	})
}

func (s *Store) getMetadata(ctx context.Context, t request.Target) (*metav1.PartialObjectMetadata, error) {
	return request.Send(ctx, t, "get", func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		return s.Metadata.Resource(t.GVR).Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	})
}

// patchMetadata patches an object, and returns its metadata.
func (s *Store) patchMetadata(ctx context.Context, t request.Target, kind types.PatchType, body []byte) (*metav1.PartialObjectMetadata, error) {
	o := metav1.PatchOptions{FieldManager: assignment.FieldManager, DryRun: s.dryRun}
	return request.Write(ctx, t, "patch", func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		return s.Metadata.Resource(t.GVR).Namespace(t.Namespace).Patch(ctx, t.Name, kind, body, o)
	})
}

// judge distinguishes a conflict from a real refusal, because the server answers 422 both to a failed test of a JSON Patch and to an invalid object.
// compare returns an error if the object no longer matches the patch's tests.
func (s *Store) judge(ctx context.Context, t request.Target, refused error, compare func(now *metav1.PartialObjectMetadata) error) error {
	if !apierrors.IsInvalid(refused) {
		return request.AsRefused(refused)
	}
	now, err := s.getMetadata(ctx, t)
	switch {
	case errors.Is(err, request.ErrGone):
		return fmt.Errorf("%w: %w", request.ErrGone, refused)
	case err != nil:
		return fmt.Errorf("%w: %w", request.ErrConflict, err) // the cause is unknown; after a conflict the caller reads again anyway
	}
	if err := compare(now); err != nil {
		return fmt.Errorf("%w: %w", err, refused)
	}
	return request.AsRefused(refused)
}

// LastWrite returns when idalloc last wrote an object, zero if the server does not record it.
func LastWrite(fields []metav1.ManagedFieldsEntry) time.Time {
	for i := range fields {
		if f := &fields[i]; f.Manager == assignment.FieldManager && f.Operation == metav1.ManagedFieldsOperationUpdate && f.Subresource == "" && f.Time != nil {
			return f.Time.Time
		}
	}
	return time.Time{}
}
