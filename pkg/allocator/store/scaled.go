package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// ParseFurther reads KIND/NAME, as ParseRef does, of a kind of which a subresource says how many pods an object of it is to have. further names these
// kinds, by resource and group, such as "rollouts.argoproj.io". It asks the API server how their objects are named. ok is false if the text names
// none of them. Errors: as of Get.
func (s *Store) ParseFurther(ctx context.Context, text, namespace string, further ...string) (ref Ref, ok bool, err error) {
	kind, name, _ := strings.Cut(text, "/")
	word, of, _ := strings.Cut(strings.ToLower(kind), ".")
	for _, one := range further {
		resource, group, _ := strings.Cut(one, ".")
		var served metav1.APIGroup
		if err := s.discover(ctx, &served, group); err != nil {
			return Ref{}, false, err
		}
		for _, v := range served.Versions {
			var list metav1.APIResourceList
			if err := s.discover(ctx, &list, v.GroupVersion); err != nil {
				return Ref{}, false, err
			}
			i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource })
			if i < 0 {
				continue
			}
			r := list.APIResources[i]
			if named := append([]string{r.Name, r.SingularName, strings.ToLower(r.Kind)}, r.ShortNames...); slices.Contains(named, word) && cmp.Or(of, group) == group {
				return Ref{APIVersion: v.GroupVersion, Kind: r.Kind, Namespace: namespace, Name: name, Resource: resource}, name != "", nil
			}
			break
		}
	}
	return Ref{}, false, nil
}

// discover asks what the API server has under a path of /apis.
func (s *Store) discover(ctx context.Context, into any, path string) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
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
