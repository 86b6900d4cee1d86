// Package node plays the pods of a namespace on a control plane of its own: for each pod it calls a function. Real processes would take time on the two
// cores away from what is measured.
package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const name = "player"

// Boot starts a control plane.
func Boot(ctx context.Context) (*suite.Suite, error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, err
	}
	env := &suite.Suite{ControlPlane: plane}
	if env.Client, err = kubernetes.NewForConfig(plane.Config()); err != nil {
		return nil, errors.Join(err, env.Stop())
	}
	return env, nil
}

// AgentRules are what an agent may do: its process reads and writes no workload.
func AgentRules() []rbacv1.PolicyRule {
	return slices.DeleteFunc(suite.Rules(), func(r rbacv1.PolicyRule) bool { return r.Resources[0] != "pods" })
}

// Node runs the pods of a namespace. When the life of a pod is over, it removes the pod's object, as a kubelet does.
type Node struct {
	// Live plays a pod. The context life ends when the pod is deleted, and Live returns soon after that. The context all ends with the node.
	Live func(all, life context.Context, pod *corev1.Pod) error
	// Hangs leaves the objects of deleted pods behind.
	Hangs bool

	client    kubernetes.Interface
	namespace string
	stop      context.CancelFunc
	running   sync.WaitGroup
	mu        sync.Mutex
	ends      map[types.UID]context.CancelFunc
	err       error // the first one
}

// Run begins to run the pods of a namespace, until Stop.
func (n *Node) Run(ctx context.Context, env *suite.Suite, namespace string) error {
	config := env.ControlPlane.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	n.client, n.namespace, n.ends = client, namespace, map[types.UID]context.CancelFunc{}
	if err := n.register(ctx); err != nil {
		return err
	}
	ctx, n.stop = context.WithCancel(ctx)
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { n.hear(ctx, o, false) },
			UpdateFunc: func(_, o any) { n.hear(ctx, o, false) },
			DeleteFunc: func(o any) { n.hear(ctx, o, true) },
		},
	})
	n.running.Go(func() { informer.RunWithContext(ctx) })
	return nil
}

// Stop ends all lives, and returns the first error of any.
func (n *Node) Stop() error {
	n.stop()
	n.running.Wait()
	return n.Err()
}

// Err returns the first thing that went wrong.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// Note keeps an error, unless all is over.
func (n *Node) Note(all context.Context, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil && all.Err() == nil && n.err == nil {
		n.err = err
	}
}

// register makes the Node object, so that the pod garbage collector leaves the pods alone.
func (n *Node) register(ctx context.Context) error {
	nodes := n.client.CoreV1().Nodes()
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	ready := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Player","lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, now, now)
	_, err = nodes.Patch(ctx, name, types.StrategicMergePatchType, ready, metav1.PatchOptions{}, "status")
	return err
}

// hear takes in a pod as it is now: its life begins or ends, once each.
func (n *Node) hear(ctx context.Context, o any, gone bool) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	end, known := n.ends[pod.UID]
	switch over := gone || pod.DeletionTimestamp != nil; {
	case over && known:
		end()
	case !over && !known:
		life, end := context.WithCancel(ctx)
		n.ends[pod.UID] = end
		n.running.Go(func() {
			defer end()
			if err := n.live(ctx, life, pod); err != nil {
				n.Note(ctx, fmt.Errorf("%s: %w", pod.Name, err))
			}
		})
	}
}

func (n *Node) live(all, life context.Context, pod *corev1.Pod) error {
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: name}}
	if err := n.client.CoreV1().Pods(n.namespace).Bind(all, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("bind it: %w", err)
	}
	if err := n.Live(all, life, pod); err != nil || n.Hangs {
		return err
	}
	return n.Remove(all, pod.Name, metav1.NewUIDPreconditions(string(pod.UID)))
}

// Remove removes the object of a pod at once, if it is there: as the kubelet does at the pod's end, and as a deletion by force does.
func (n *Node) Remove(ctx context.Context, pod string, only *metav1.Preconditions) error {
	err := n.client.CoreV1().Pods(n.namespace).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: only})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Report says whether a pod is Ready.
func (n *Node) Report(ctx context.Context, pod string, ready bool) error {
	status, at := corev1.ConditionFalse, time.Now().UTC().Format(time.RFC3339)
	if ready {
		status = corev1.ConditionTrue
	}
	body := fmt.Appendf(nil, `{"status":{"phase":"Running","conditions":[{"type":"ContainersReady","status":%q,"lastTransitionTime":%q},{"type":"Ready","status":%q,"lastTransitionTime":%q}]}}`,
		status, at, status, at)
	_, err := n.client.CoreV1().Pods(n.namespace).Patch(ctx, pod, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
