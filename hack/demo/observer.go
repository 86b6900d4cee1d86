package main

import (
	"context"
	"fmt"
	"maps"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// observer knows the slots as "idalloc get" shows them, the pods as the API server has them, and what
// each pod says of itself.
type observer struct {
	store   *store.Store
	ref     store.Ref
	running sync.WaitGroup
	dirty   chan struct{} // something changed: read the slots again

	mu         sync.Mutex
	changed    chan struct{} // closed and replaced at every change
	view       inspect.View
	pods       map[types.UID]*corev1.Pod
	everSeen   map[types.UID]bool
	says       map[types.UID]identity.Identity
	baseline   map[string]int  // id by pod at the begin of the phase
	assignment string          // the Deployment's annotation
	seals      map[string]bool // every one that the Deployment had; a write of idalloc makes one
}

// newObserver begins to follow the workload of a namespace until ctx ends.
func newObserver(ctx context.Context, env *suite.Suite, namespace string) (*observer, error) {
	s, err := store.New(env.ControlPlane.Config(), "", clock.RealClock{})
	if err != nil {
		return nil, err
	}
	ref, err := store.ParseRef("deployment/"+workload, namespace)
	if err != nil {
		return nil, err
	}
	o := &observer{
		store: s, ref: ref, dirty: make(chan struct{}, 1), changed: make(chan struct{}),
		pods: map[types.UID]*corev1.Pod{}, everSeen: map[types.UID]bool{}, says: map[types.UID]identity.Identity{},
		baseline: map[string]int{}, seals: map[string]bool{},
	}
	factory := informers.NewSharedInformerFactoryWithOptions(env.Client, 0, informers.WithNamespace(namespace))
	ask := &asker{observer: o, stop: map[types.UID]context.CancelFunc{}}
	for informer, see := range map[cache.SharedIndexInformer]func(object any, gone bool){
		factory.Core().V1().Pods().Informer():        func(object any, gone bool) { o.seePod(ctx, ask, object, gone) },
		factory.Apps().V1().Deployments().Informer(): o.seeDeployment,
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { see(object, false) },
			UpdateFunc: func(_, object any) { see(object, false) },
			DeleteFunc: func(object any) { see(object, true) },
		}); err != nil {
			return nil, fmt.Errorf("follow the pods and the Deployment: %w", err)
		}
	}
	factory.Start(ctx.Done())
	o.running.Go(func() {
		<-ctx.Done()
		factory.Shutdown()
	})
	o.running.Go(func() { o.read(ctx) })
	return o, nil
}

// wait returns when nothing of the observer runs any more. The context of newObserver must have ended.
func (o *observer) wait() { o.running.Wait() }

func (o *observer) seePod(ctx context.Context, ask *asker, object any, gone bool) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	ask.follow(ctx, pod, gone)
	o.change(func() {
		o.everSeen[pod.UID] = true
		if gone {
			delete(o.pods, pod.UID)
			return
		}
		o.pods[pod.UID] = pod
	})
	o.readAgain()
}

func (o *observer) seeDeployment(object any, _ bool) {
	deployment, ok := object.(*appsv1.Deployment)
	if !ok {
		return
	}
	o.change(func() {
		o.assignment = deployment.Annotations[assignment.DefaultKey]
		if seal := deployment.Annotations[assignment.SealKey]; seal != "" {
			o.seals[seal] = true
		}
	})
	o.readAgain()
}

func (o *observer) readAgain() {
	select {
	case o.dirty <- struct{}{}:
	default:
	}
}

// read reads the slots whenever something changed.
func (o *observer) read(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.dirty:
		}
		if view, err := inspect.Read(ctx, o.store, o.ref); err == nil {
			o.change(func() { o.view = view })
		} // else it is not there yet, or gone: the next event tells
	}
}

func (o *observer) change(do func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	do()
	close(o.changed)
	o.changed = make(chan struct{})
}

// frame returns what is known now.
func (o *observer) frame() frame {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.build()
}

// await blocks until a frame is what is waited for.
func (o *observer) await(ctx context.Context, until func(frame) bool) (frame, error) {
	for {
		o.mu.Lock()
		f, changed := o.build(), o.changed
		o.mu.Unlock()
		if until(f) {
			return f, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return f, context.Cause(ctx)
		}
	}
}

// mark makes the present the beginning of a phase.
func (o *observer) mark() (before frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.build()
	o.baseline = maps.Clone(f.holders)
	return f
}
