package store

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/rollout"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
)

// GetOwner reads the owner. Errors: request.ErrGone, *request.ForbiddenError, or another error that request.Temporary judges.
func (s *Store) GetOwner(ctx context.Context, ref kinds.Ref) (Owner, error) {
	if ref.Resource != "" {
		return s.getScaled(ctx, ref)
	}
	o, err := s.getObject(ctx, ref)
	if err != nil {
		return Owner{}, err
	}
	return DecodeOwner(ref, o, nil)
}

// GetWhole reads the owner with all fields, including its whole status. Errors: as of GetOwner.
func (s *Store) GetWhole(ctx context.Context, ref kinds.Ref) (*unstructured.Unstructured, error) {
	return s.getWhole(ctx, targetOf(ref))
}

// at directs a request to owners of ref's kind in its namespace.
func at(request *rest.Request, ref kinds.Ref) *rest.Request {
	gvr := ref.GVR()
	return request.AbsPath("apis", gvr.Group, gvr.Version).Namespace(ref.Namespace).Resource(gvr.Resource)
}

func (s *Store) getObject(ctx context.Context, ref kinds.Ref) (*wire.Object, error) {
	return request.Send(ctx, targetOf(ref), "get", func(ctx context.Context) (*wire.Object, error) {
		o := &wire.Object{}
		return o, at(s.owners.Get(), ref).Name(ref.Name).Do(ctx).Into(o)
	})
}

// MayFollow returns a *request.ForbiddenError if a watch of the owner is forbidden. Otherwise its errors are as of GetOwner, but never request.ErrGone.
func (s *Store) MayFollow(ctx context.Context, ref kinds.Ref) error {
	_, err := request.Send(ctx, targetOf(ref), "list", func(ctx context.Context) (*wire.Objects, error) {
		return s.ListObjects(ctx, ref, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name).String()})
	})
	return err
}

// ListObjects lists the objects of ref's kind in its namespace. Only ctx bounds the request. Errors: the client's own.
func (s *Store) ListObjects(ctx context.Context, ref kinds.Ref, o metav1.ListOptions) (*wire.Objects, error) {
	list := &wire.Objects{}
	if err := at(s.owners.Get(), ref).SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.SchemeGroupVersion).Do(ctx).Into(list); err != nil {
		return nil, err
	}
	return list, nil
}

// WatchObjects watches the objects of ref's kind in its namespace until ctx ends or the caller stops the watch. Errors: the
// client's own.
func (s *Store) WatchObjects(ctx context.Context, ref kinds.Ref, o metav1.ListOptions) (apiwatch.Interface, error) {
	o.Watch = true
	return at(s.owners.Get(), ref).SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.SchemeGroupVersion).Watch(ctx)
}

// RevisionOf reads the revision of a Deployment's pod from its ReplicaSet. For a pod without a ReplicaSet it returns the zero Revision, which is never
// current. Errors: as of GetOwner.
func (s *Store) RevisionOf(ctx context.Context, pod *metav1.PartialObjectMetadata) (rollout.Revision, error) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if !kinds.IsReplicaSet(controller) {
		return rollout.Revision{}, nil
	}
	o, err := s.getObject(ctx, kinds.Ref{APIVersion: controller.APIVersion, Kind: kinds.ReplicaSet, Namespace: pod.Namespace, Name: controller.Name})
	if err != nil {
		return rollout.Revision{}, err
	}
	return rollout.RevisionOf(o), nil
}

// getScaled reads an owner of a kind of which only the scale subresource is known.
func (s *Store) getScaled(ctx context.Context, ref kinds.Ref) (Owner, error) {
	meta, err := s.getMetadata(ctx, targetOf(ref))
	if err != nil {
		return Owner{}, err
	}
	scale, err := request.Send(ctx, targetOf(ref), "get", func(ctx context.Context) (*unstructured.Unstructured, error) {
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
