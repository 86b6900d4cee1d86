package watch

import (
	"context"
	"sync/atomic"
	"unique"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
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
	// restores counts how often somebody made the map clean again.
	restores *atomic.Int64
}

// Owner starts to follow ref until ctx ends.
func Owner(ctx context.Context, s *store.Store, ref store.Ref, log logr.Logger) *OwnerStream {
	api := API[*store.Object]{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return s.ListObjects(ctx, ref, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return s.WatchObjects(ctx, ref, o)
		},
		Type: &store.Object{},
	}
	restores, foreign := new(atomic.Int64), false
	api.Heard = func(o *store.Object) {
		tracked := o.Tracked()
		if tracked && foreign {
			restores.Add(1)
		}
		foreign = !tracked
	}
	return &OwnerStream{
		Stream: Follow(ctx, "owner", api, ByName(ref.Name), s.Clock.Now, log),
		s:      s, ref: ref, restores: restores,
	}
}

// Restores returns how often a map that somebody else had written was heard of as idalloc's again, however short that lasted.
func (o *OwnerStream) Restores() int { return int(o.restores.Load()) }

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
	owner, err = o.s.Decode(o.ref, object, earlier)
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
	return Follow(ctx, "pod", podAPI(s, namespace), ByName(name), s.Clock.Now, log)
}

// Selected starts to follow the live pods that a label selector matches until ctx ends. A pod that
// dies in any way leaves the stream. There may be thousands, so only what a plan needs is kept of each, and nothing is
// told of a pod while UID and receipt stay the same.
func Selected(ctx context.Context, s *store.Store, namespace, selector string, log logr.Logger) *PodStream {
	api := podAPI(s, namespace)
	api.Trim, api.Same = trimPod, samePod
	return Follow(ctx, selector, api, func(o *metav1.ListOptions) {
		o.LabelSelector = selector
		o.FieldSelector = store.LivePods
	}, s.Clock.Now, log)
}

func trimPod(pod *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		Labels: only(pod.Labels, store.PodIndexLabel, store.CompletionIndexLabel), Annotations: only(pod.Annotations, assignment.ReceiptKey, store.CompletionIndexLabel),
	}}
	if c := metav1.GetControllerOfNoCopy(pod); c != nil {
		kept.OwnerReferences = []metav1.OwnerReference{{UID: unique.Make(c.UID).Value(), Controller: new(true)}}
	}
	return kept
}

// only returns these keys of m, nil if there is none.
func only(m map[string]string, keys ...string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, ok := m[key]; ok {
			if kept == nil {
				kept = make(map[string]string, 1)
			}
			kept[key] = value
		}
	}
	return kept
}

func samePod(before, now *metav1.PartialObjectMetadata) bool {
	return before.UID == now.UID && before.Annotations[assignment.ReceiptKey] == now.Annotations[assignment.ReceiptKey]
}

func podAPI(s *store.Store, namespace string) API[*metav1.PartialObjectMetadata] {
	client := s.Metadata.Resource(store.Pods).Namespace(namespace)
	return API[*metav1.PartialObjectMetadata]{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		Watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return client.Watch(ctx, o)
		},
		Type: &metav1.PartialObjectMetadata{},
	}
}
