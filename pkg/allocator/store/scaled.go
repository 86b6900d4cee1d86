package store

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// getScaled reads an owner of a kind of which nothing is known but that it has the subresource scale.
func (s *Store) getScaled(ctx context.Context, ref Ref) (Owner, error) {
	meta, err := s.getMetadata(ctx, ref.target())
	if err != nil {
		return Owner{}, err
	}
	scale, err := request(ctx, ref.target(), "get", func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.Dynamic.Resource(ref.GVR()).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{}, "scale")
	})
	if err != nil {
		return Owner{}, fmt.Errorf("subresource scale: %w", err)
	}
	count, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	if err != nil {
		return Owner{}, fmt.Errorf("%s: subresource scale: spec.replicas: %w", ref, err)
	}
	selector, _, err := unstructured.NestedString(scale.Object, "status", "selector")
	if err != nil {
		return Owner{}, fmt.Errorf("%s: subresource scale: status.selector: %w", ref, err)
	}
	o := Owner{Ref: ref, Count: int(count), Selector: selector}
	return o.with(meta), nil
}

// with returns an owner of such a kind with its present metadata.
func (o Owner) with(meta *metav1.PartialObjectMetadata) Owner {
	o.UID, o.Generation, o.ResourceVersion, o.Annotations = meta.UID, meta.Generation, meta.ResourceVersion, meta.Annotations
	o.Terminating = meta.DeletionTimestamp != nil
	o.Record, o.Wish = assignment.Decode(o.Annotations), assignment.DecodeWish(o.Annotations)
	return o
}

// patchOwner patches an owner. If it returns an error with an owner that has a UID, the patch was carried out.
func (s *Store) patchOwner(ctx context.Context, from Owner, body []byte) (Owner, error) {
	if from.Resource == "" {
		o, err := s.patchObject(ctx, from.Ref, body)
		if err != nil {
			return Owner{}, err
		}
		written, err := DecodeOwner(from.Ref, o, nil)
		written.UID = o.UID
		return written, err
	}
	meta, err := s.patchMetadata(ctx, from.target(), types.JSONPatchType, body)
	if err != nil {
		return Owner{}, err
	}
	return from.with(meta), nil
}
