package watch

import (
	"context"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// OwnerStream follows one owner. One goroutine may use it at a time.
type OwnerStream struct {
	*Stream[*store.Object]
	s   *store.Store
	ref store.Ref
	// last is the decoded form of seen.
	last store.Owner
	seen *store.Object
}

// Owner starts to follow ref until ctx ends.
func Owner(ctx context.Context, s *store.Store, ref store.Ref, log logr.Logger) *OwnerStream {
	api := API{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return s.ListObjects(ctx, ref, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return s.WatchObjects(ctx, ref, o)
		},
		Type: &store.Object{},
	}
	return &OwnerStream{
		Stream: Follow[*store.Object](ctx, "owner", api, ByName(ref.Name), s.Clock.Now, log),
		s:      s, ref: ref,
	}
}

// Latest returns the newest moment of the owner. ok is false while none is known: it was deleted,
// or not heard of yet (Synced tells). What it returns is shared: do not change it.
func (o *OwnerStream) Latest() (owner store.Owner, ok bool, err error) {
	object, ok := o.Get(o.ref.Name)
	if !ok {
		return store.Owner{}, false, nil
	}
	if object == o.seen && len(o.last.Record.Problems) == 0 {
		return o.last, true, nil
	}
	var earlier *store.Owner
	if o.seen != nil {
		earlier = &o.last
	}
	owner, err = store.DecodeOwner(o.ref, object, o.s.Key, o.s.Clock.Now(), earlier)
	if err != nil {
		return store.Owner{}, false, err
	}
	o.last, o.seen = owner, object
	return owner, true, nil
}

// PodStream follows pods' metadata.
type PodStream = Stream[*metav1.PartialObjectMetadata]

// Pod starts to follow one pod until ctx ends.
func Pod(ctx context.Context, s *store.Store, namespace, name string, log logr.Logger) *PodStream {
	return pods(ctx, "pod", s, namespace, ByName(name), log)
}

// Selected starts to follow the live pods that a label selector matches until ctx ends. A pod that
// dies in any way leaves the stream.
func Selected(ctx context.Context, s *store.Store, namespace, selector string, log logr.Logger) *PodStream {
	return pods(ctx, selector, s, namespace, func(o *metav1.ListOptions) {
		o.LabelSelector = selector
		o.FieldSelector = store.LivePods
	}, log)
}

func pods(ctx context.Context, name string, s *store.Store, namespace string, restrict func(*metav1.ListOptions), log logr.Logger) *PodStream {
	client := s.Metadata.Resource(store.Pods).Namespace(namespace)
	api := API{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		Watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return client.Watch(ctx, o)
		},
		Type: &metav1.PartialObjectMetadata{},
	}
	return Follow[*metav1.PartialObjectMetadata](ctx, name, api, restrict, s.Clock.Now, log)
}
