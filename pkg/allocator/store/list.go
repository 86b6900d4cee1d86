package store

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/store/page"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// EachMetadata is EachPod for objects of any kind. It calls again before each first page, because objects passed to do before may be gone. An empty
// namespace means all namespaces. With o.ResourceVersionMatch, it first asks for everything in one page, because an API server answers that from its cache.
func (s *Store) EachMetadata(
	ctx context.Context, of schema.GroupVersionResource, namespace string, o metav1.ListOptions, again func(), do func(*metav1.PartialObjectMetadata),
) error {
	limit := int64(page.Size)
	if o.ResourceVersionMatch != "" {
		limit = 0
	}
	return page.Each(ctx, s.Pages, request.Target{GVR: of, Namespace: namespace}, o, limit, func(ctx context.Context, o metav1.ListOptions) (string, error) {
		list, err := s.Metadata.Resource(of).Namespace(namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		if o.Continue == "" {
			again()
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		return list.Continue, nil
	})
}

// EachObject is EachMetadata for whole objects.
func (s *Store) EachObject(ctx context.Context, of schema.GroupVersionResource, namespace string, o metav1.ListOptions, again func(), do func(*unstructured.Unstructured)) error {
	return s.eachObject(ctx, request.Target{GVR: of, Namespace: namespace}, o, page.Size, again, do)
}

// eachObject calls again before each first page.
func (s *Store) eachObject(ctx context.Context, of request.Target, o metav1.ListOptions, limit int64, again func(), do func(*unstructured.Unstructured)) error {
	return page.Each(ctx, s.Pages, of, o, limit, func(ctx context.Context, o metav1.ListOptions) (string, error) {
		list, err := s.Dynamic.Resource(of.GVR).Namespace(of.Namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		if o.Continue == "" {
			again()
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		return list.GetContinue(), nil
	})
}
