package observe

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Follower shows an Observer the pods and Leases of a cluster or of one namespace.
type Follower struct {
	Metadata  metadata.Interface
	Dynamic   dynamic.Interface
	Namespace string
	Clock     clock.Clock
	Observer  *Observer
}

// pageSize limits how many objects are in memory at a time.
const pageSize = 250

// leases is the resource of Leases.
var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"} //nolint:gochecknoglobals // a constant

// Once lists the pods and the Leases and shows them. It blocks for the two lists.
func (f *Follower) Once(ctx context.Context) error {
	if _, err := f.listPods(ctx); err != nil {
		return err
	}
	_, err := f.listLeases(ctx)
	return err
}

// Run follows pods and Leases until ctx ends. After an interruption it lists them again.
func (f *Follower) Run(ctx context.Context, failed func(error)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.follow(ctx, f.listLeases, f.watchLeases, failed)
	}()
	f.follow(ctx, f.listPods, f.watchPods, failed)
	<-done
}

type (
	lister  func(ctx context.Context) (version string, err error)
	watcher func(ctx context.Context, version string) error
)

func (f *Follower) follow(ctx context.Context, list lister, watch watcher, failed func(error)) {
	for ctx.Err() == nil {
		version, err := list(ctx)
		if err == nil {
			err = watch(ctx, version)
		}
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
		case <-f.Clock.After(time.Second):
		}
	}
}

// listPods shows all live pods as of one moment, and reports the pods that are gone. It returns the resourceVersion of the list.
func (f *Follower) listPods(ctx context.Context) (string, error) {
	o := metav1.ListOptions{FieldSelector: store.LivePods, Limit: pageSize}
	for {
		list, err := f.Metadata.Resource(store.Pods).Namespace(f.Namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		if o.Continue == "" {
			f.Observer.forget()
		}
		for i := range list.Items {
			f.Observer.Pod(&list.Items[i].ObjectMeta, nil, true)
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return list.ResourceVersion, nil
		}
	}
}

func (f *Follower) watchPods(ctx context.Context, version string) error {
	w, err := f.Metadata.Resource(store.Pods).Namespace(f.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: store.LivePods, ResourceVersion: version})
	if err != nil {
		return err
	}
	return each(w, func(kind watch.EventType, o runtime.Object) {
		pod, ok := o.(*metav1.PartialObjectMetadata)
		switch {
		case !ok:
		case kind == watch.Deleted:
			f.Observer.Gone(string(pod.UID))
		default:
			f.Observer.Pod(&pod.ObjectMeta, nil, false)
		}
	})
}

func (f *Follower) listLeases(ctx context.Context) (string, error) {
	o := metav1.ListOptions{LabelSelector: receipt.OwnerLabel, Limit: pageSize}
	for {
		list, err := f.Dynamic.Resource(leases).Namespace(f.Namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			f.lease(&list.Items[i], false, true)
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return list.GetResourceVersion(), nil
		}
	}
}

func (f *Follower) watchLeases(ctx context.Context, version string) error {
	w, err := f.Dynamic.Resource(leases).Namespace(f.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: receipt.OwnerLabel, ResourceVersion: version})
	if err != nil {
		return err
	}
	return each(w, func(kind watch.EventType, o runtime.Object) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			f.lease(u, kind == watch.Deleted, false)
		}
	})
}

func (f *Follower) lease(u *unstructured.Unstructured, gone, first bool) {
	var l Lease
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &l) == nil {
		f.Observer.Lease(&l, gone, first)
	}
}

// each calls do for each event of a watch until the watch ends, and returns the error that ended it.
func each(w watch.Interface, do func(watch.EventType, runtime.Object)) error {
	defer w.Stop()
	for e := range w.ResultChan() {
		switch e.Type {
		case watch.Error:
			return apierrors.FromObject(e.Object)
		case watch.Bookmark:
		case watch.Added, watch.Modified, watch.Deleted:
			do(e.Type, e.Object)
		}
	}
	return nil
}
