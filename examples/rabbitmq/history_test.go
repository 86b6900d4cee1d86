//go:build e2e

package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/idalloc/idalloc/test/envtest/example"
)

// state is what one version of a Deployment says.
type state struct {
	at time.Time
	// replicas is what the Deployment asks for, and pods how many there are and are Ready. 0 pods: some are not Ready.
	replicas, pods int
	// owners is how many ids own partitions, and owned how many partitions have an owner.
	owners, owned int
	target        string
}

// history is what a watch told of a Deployment.
type history struct {
	mu      sync.Mutex
	states  []state
	changed chan struct{} // closed with each change
}

// watch follows the one Deployment of this name until ctx ends.
func (c *cluster) watch(ctx context.Context, t *testing.T, namespace, name string) *history {
	t.Helper()
	h := &history{changed: make(chan struct{})}
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(namespace))
	add := func(object any) {
		if d, ok := object.(*appsv1.Deployment); ok && d.Name == name {
			h.add(d)
		}
	}
	_, err := factory.Apps().V1().Deployments().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, object any) { add(object) },
	})
	must(t, err)
	ctx, cancel := context.WithCancel(ctx)
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	return h
}

func (h *history) add(d *appsv1.Deployment) {
	s := state{at: time.Now(), replicas: int(*d.Spec.Replicas), target: d.Annotations[keyTarget]}
	if d.Status.Replicas == d.Status.ReadyReplicas && d.Status.ObservedGeneration == d.Generation {
		s.pods = int(d.Status.Replicas)
	}
	if owners, err := example.OwnersOf(d); err == nil { // else no owner is known
		s.owners = len(owners)
		for _, set := range owners {
			s.owned += set.Len()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states = append(h.states, s)
	close(h.changed)
	h.changed = make(chan struct{})
}

// await waits until the Deployment fits.
func (h *history) await(ctx context.Context, what string, fits func(state) bool) (state, error) {
	for {
		last, changed := h.last()
		if fits(last) {
			return last, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return last, fmt.Errorf("%s: the last state is %+v: %w", what, last, context.Cause(ctx))
		}
	}
}

// last returns the last state, and what is closed when there is another one.
func (h *history) last() (state, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.states) == 0 {
		return state{}, h.changed
	}
	return h.states[len(h.states)-1], h.changed
}

// cost is what a time has cost.
type cost struct {
	// most is the largest number of replicas, scalings how often the number changed, and hours the replicas over the time.
	most, scalings int
	hours          time.Duration
}

// between returns what the Deployment asked for in that time.
func (h *history) between(from, to time.Time) (c cost) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, at := 0, from
	for _, s := range h.states {
		if s.at.After(to) {
			break
		}
		if s.at.After(from) {
			c.hours += s.at.Sub(at) * time.Duration(before)
			at = s.at
			if s.replicas != before {
				c.scalings++
			}
			c.most = max(c.most, s.replicas)
		}
		before = s.replicas
	}
	c.hours += to.Sub(at) * time.Duration(before)
	return c
}
