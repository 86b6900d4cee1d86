package store

import (
	"context"
	"math"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

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

// GetLivePod returns a pod's metadata, by a consistent read, or nil if there is no such pod or it is Succeeded or Failed. Errors: as of EachPod.
func (s *Store) GetLivePod(ctx context.Context, namespace, name string) (pod *metav1.PartialObjectMetadata, err error) {
	err = s.EachPod(ctx, namespace, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String() + "," + LivePods}, func(p *metav1.PartialObjectMetadata) { pod = p })
	return pod, err
}

// EachPod lists pods' metadata with a consistent read and calls do for each pod. It keeps at most one page of at most 8 MiB in memory. The first page shows
// a state after the call, and the other pages show the same state.
//
// If the server forgets that state before the last page, the list starts over, in one page. If a page is too large, it starts over with fewer pods per
// page. If the server forgets again, the one page may have any size. When the list starts over, do gets pods again, and may have got pods that are gone.
// RequestTimeout bounds each page. Errors: *request.ForbiddenError, or another error that Temporary judges.
func (s *Store) EachPod(ctx context.Context, namespace string, o metav1.ListOptions, do func(*metav1.PartialObjectMetadata)) error {
	return s.EachMetadata(ctx, Pods, namespace, o, func() {}, do)
}

// EachMetadata is EachPod for objects of any kind. It calls again before each first page, because objects passed to do before may be gone. An empty
// namespace means all namespaces. With o.ResourceVersionMatch, it first asks for everything in one page, because an API server answers that from its cache.
func (s *Store) EachMetadata(
	ctx context.Context, of schema.GroupVersionResource, namespace string, o metav1.ListOptions, again func(), do func(*metav1.PartialObjectMetadata),
) error {
	limit := int64(pageSize)
	if o.ResourceVersionMatch != "" {
		limit = 0
	}
	return s.eachPage(ctx, request.Target{GVR: of, Namespace: namespace}, o, limit, func(ctx context.Context, o metav1.ListOptions) (string, error) {
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

// EachFullPod is EachMetadata for whole pods.
func (s *Store) EachFullPod(ctx context.Context, namespace string, o metav1.ListOptions, again func(), do func(*unstructured.Unstructured)) error {
	return s.EachObject(ctx, Pods, namespace, o, again, do)
}

// EachObject is EachMetadata for whole objects.
func (s *Store) EachObject(ctx context.Context, of schema.GroupVersionResource, namespace string, o metav1.ListOptions, again func(), do func(*unstructured.Unstructured)) error {
	return s.eachObject(ctx, request.Target{GVR: of, Namespace: namespace}, o, pageSize, again, do)
}

// eachObject calls again before each first page.
func (s *Store) eachObject(ctx context.Context, of request.Target, o metav1.ListOptions, limit int64, again func(), do func(*unstructured.Unstructured)) error {
	return s.eachPage(ctx, of, o, limit, func(ctx context.Context, o metav1.ListOptions) (string, error) {
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
