package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

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

// Further asks the API server for kinds that are named by resource and group, such as "rollouts.argoproj.io". A kind that the API server lacks is an error.
func (s *Store) Further(ctx context.Context, names ...string) ([]kinds.Kind, error) {
	all := make([]kinds.Kind, 0, len(names))
	for _, name := range names {
		f, err := s.further(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func (s *Store) further(ctx context.Context, name string) (kinds.Kind, error) {
	resource, group, _ := strings.Cut(name, ".")
	var served metav1.APIGroup
	if err := s.discover(ctx, &served, group); err != nil {
		return kinds.Kind{}, err
	}
	for _, v := range served.Versions {
		var list metav1.APIResourceList
		if err := s.discover(ctx, &list, v.GroupVersion); err != nil {
			return kinds.Kind{}, err
		}
		if i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }); i >= 0 {
			r := list.APIResources[i]
			gvk := schema.FromAPIVersionAndKind(v.GroupVersion, r.Kind)
			return kinds.Scaled(gvk, resource, append(r.ShortNames, r.SingularName)...), nil
		}
	}
	return kinds.Kind{}, fmt.Errorf("find the kind: /apis/%s has no %s: write RESOURCE.GROUP of a kind that the cluster has, such as rollouts.argoproj.io", group, resource)
}

// ParseFurther reads KIND/NAME, like ParseRef, for these kinds. ok is false if the text names none of them.
func ParseFurther(text, namespace string, further ...kinds.Kind) (ref kinds.Ref, ok bool) {
	return kinds.Kinds(further).Parse(text, namespace)
}

// discover reads what the API server has under a path of /apis.
func (s *Store) discover(ctx context.Context, into any, path string) error {
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	body, err := s.owners.Get().AbsPath("apis", path).Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("find the kind: ask the API server for /apis/%s: %w", path, err)
	}
	return nil
}

// with returns an owner of a further kind with its present metadata.
func (o Owner) with(meta *metav1.PartialObjectMetadata) Owner {
	o.UID, o.Generation, o.ResourceVersion, o.Annotations = meta.UID, meta.Generation, meta.ResourceVersion, meta.Annotations
	o.Terminating = meta.DeletionTimestamp != nil
	o.Record, o.Wish = assignment.Decode(o.Annotations), assignment.DecodeWish(o.Annotations)
	return o
}

// patchOwner patches an owner. If it returns an error and an owner with a UID, the patch was carried out.
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
	meta, err := s.patchMetadata(ctx, targetOf(from.Ref), types.JSONPatchType, body)
	if err != nil {
		return Owner{}, err
	}
	return from.with(meta), nil
}
