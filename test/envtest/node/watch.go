package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// watch feeds the node with all pods of the cluster until Stop.
func (n *Node) watch() {
	pods := cache.NewListWatchFromClient(n.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.Everything())
	reflector := cache.NewReflectorWithOptions(pods, &corev1.Pod{}, store{n}, cache.ReflectorOptions{
		Name: name,
		// The default grows to 30 s, and a test that restarts the API server would wait for it.
		Backoff: &wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 4, Cap: 500 * time.Millisecond},
	})
	reflector.RunWithContext(n.ctx)
}

// observe acts on a pod's present state. The caller holds n.mu.
func (n *Node) observe(object *corev1.Pod) {
	if n.paused != nil || n.stopped || n.finished[object.UID] {
		return
	}
	if p, ok := n.pods[object.UID]; ok {
		p.update(object)
		return
	}
	free := object.Spec.NodeName == ""
	switch {
	case free && !schedulable(object):
	case free && n.options.Play == nil:
		n.schedule(object)
	case free, object.Spec.NodeName == name && !terminal(object.Status.Phase):
		p := newPod(n, object)
		n.pods[object.UID] = p
		n.running.Go(func() {
			p.run()
			n.mu.Lock()
			defer n.mu.Unlock()
			delete(n.pods, object.UID)
			if _, present := n.objects[object.UID]; present {
				n.finished[object.UID] = true
			}
		})
	}
}

func terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// store receives what the reflector sees. It has its own type because the
// methods are no part of the node's interface.
type store struct{ node *Node }

var _ cache.ReflectorStore = store{}

func (s store) Add(object any) error { return s.Update(object) }

func (s store) Update(object any) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("node: watch delivered a %T", object)
	}
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	n.objects[pod.UID] = pod
	n.observe(pod)
	return nil
}

func (s store) Delete(object any) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("node: watch delivered a %T", object)
	}
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(pod.UID)
	return nil
}

// Replace is called with the result of a list, the first one or one after the
// watch broke: pods may have vanished in between.
func (s store) Replace(list []any, _ string) error {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	present := make(map[types.UID]bool, len(list))
	for _, object := range list {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("node: list delivered a %T", object)
		}
		present[pod.UID] = true
		n.objects[pod.UID] = pod
		n.observe(pod)
	}
	for uid := range n.objects {
		if !present[uid] {
			n.forget(uid)
		}
	}
	return nil
}

func (s store) Resync() error { return nil }

// forget drops a pod whose object is gone. The caller holds n.mu.
func (n *Node) forget(uid types.UID) {
	delete(n.objects, uid)
	delete(n.finished, uid)
	if p, ok := n.pods[uid]; ok && n.paused == nil {
		p.vanish()
	}
}

// retry calls do until it succeeds or ctx ends, with the node connected.
func (n *Node) retry(ctx context.Context, do func(context.Context) error) error {
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 5, Cap: time.Second}
	for {
		if err := n.connected(ctx); err != nil {
			return err
		}
		err := do(ctx)
		if err == nil {
			return nil
		}
		timer := time.NewTimer(backoff.Step())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
