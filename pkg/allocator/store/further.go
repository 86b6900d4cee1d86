package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Further asks the API server for kinds that are named by resource and group, such as "rollouts.argoproj.io". A kind that the API server lacks is an error.
func (s *Store) Further(ctx context.Context, names ...string) (kinds.Kinds, error) {
	all := make(kinds.Kinds, 0, len(names))
	for _, name := range names {
		further, err := kinds.Resolve(func(of schema.GroupResource) (schema.GroupVersionKind, []string, error) { return s.served(ctx, of) }, name)
		if err != nil {
			return nil, err
		}
		all = append(all, further)
	}
	return all, nil
}

// served asks for the kind of a resource in each version of its group.
func (s *Store) served(ctx context.Context, of schema.GroupResource) (kind schema.GroupVersionKind, words []string, err error) {
	var group metav1.APIGroup
	if err := s.discover(ctx, &group, of.Group); err != nil {
		return kind, nil, err
	}
	for _, v := range group.Versions {
		var list metav1.APIResourceList
		if err := s.discover(ctx, &list, v.GroupVersion); err != nil {
			return kind, nil, err
		}
		if i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == of.Resource }); i >= 0 {
			r := list.APIResources[i]
			return schema.FromAPIVersionAndKind(v.GroupVersion, r.Kind), append(r.ShortNames, r.SingularName), nil
		}
	}
	return kind, nil, fmt.Errorf("find the kind: /apis/%s has no %s: write RESOURCE.GROUP of a kind that the cluster has, such as rollouts.argoproj.io", of.Group, of.Resource)
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
