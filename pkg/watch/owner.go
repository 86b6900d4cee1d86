package watch

import (
	"context"
	"unique"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
)

// OwnerStream follows one owner. Only one goroutine at a time may use it.
type OwnerStream struct {
	*Stream[*wire.Object]
	ref kinds.Ref
	// last is the decoded form of seen.
	last store.Owner
	seen *wire.Object
}

// Owner starts to follow the owner that ref names, in a goroutine that ends with ctx. It does not block and does not fail: Stale and Denied report later
// problems.
func Owner(ctx context.Context, s *store.Store, ref kinds.Ref, log logr.Logger) *OwnerStream {
	api := API[*wire.Object]{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return s.ListObjects(ctx, ref, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return s.WatchObjects(ctx, ref, o)
		},
		Type: &wire.Object{},
	}
	return &OwnerStream{
		Stream: Follow(ctx, "owner", api, ByName(ref.Name), s.Clock.Now, log),
		ref:    ref,
	}
}

// Latest returns the newest version of the owner, without blocking. ok is false if none is known: the owner does not exist, or the stream has not got it
// yet (Synced is false). The error names the unreadable field of the owner. Do not change the result, because its maps are shared.
func (o *OwnerStream) Latest() (owner store.Owner, ok bool, err error) {
	object, ok := o.Get(o.ref.Name)
	if !ok {
		return store.Owner{}, false, nil
	}
	if object == o.seen {
		return o.last, true, nil
	}
	var earlier *store.Owner
	if o.seen != nil {
		earlier = &o.last
	}
	owner, err = store.DecodeOwner(o.ref, object, earlier)
	if err != nil {
		return store.Owner{}, false, err
	}
	o.last, o.seen = owner, object
	return owner, true, nil
}

// PodStream follows the metadata of pods.
type PodStream = Stream[*metav1.PartialObjectMetadata]

// Pod starts to follow one pod, in a goroutine that ends with ctx.
func Pod(ctx context.Context, s *store.Store, namespace, name string, log logr.Logger) *PodStream {
	return Follow(ctx, "pod", podAPI(s, namespace), ByName(name), s.Clock.Now, log)
}

// LivePod starts to follow the pod of this name while it lives, in a goroutine that ends with ctx. A pod that is gone, Succeeded or Failed leaves the
// stream.
func LivePod(ctx context.Context, s *store.Store, namespace, name string, log logr.Logger) *PodStream {
	api := podAPI(s, namespace)
	api.Trim, api.Same = trimPod, samePod
	return Follow(ctx, name, api, func(o *metav1.ListOptions) {
		ByName(name)(o)
		o.FieldSelector += "," + store.LivePods
	}, s.Clock.Now, log)
}

// Selected starts to follow the live pods that a label selector matches, in a goroutine that ends with ctx. A pod that is gone, Succeeded or Failed leaves
// the stream. There may be thousands of pods. So the stream keeps only the metadata that a plan needs, and Changed reports a change of a pod only if its
// UID, its receipt or its deletion differs.
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
		Labels:      only(pod.Labels, kinds.PodIndexLabel, kinds.CompletionIndexLabel, receipt.IDLabel),
		Annotations: only(pod.Annotations, receipt.Key, kinds.CompletionIndexLabel),
	}}
	if c := metav1.GetControllerOfNoCopy(pod); c != nil {
		kept.OwnerReferences = []metav1.OwnerReference{{UID: unique.Make(c.UID).Value(), Controller: new(true)}}
	}
	return kept
}

// only returns the part of m with these keys, nil if there is none.
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
	return before.UID == now.UID && before.Annotations[receipt.Key] == now.Annotations[receipt.Key] &&
		before.DeletionTimestamp.Equal(now.DeletionTimestamp)
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
