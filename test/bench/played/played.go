// Package played boots a control plane, and plays its pods: for each pod it calls a function. Real processes would take time on the two
// cores away from what is measured.
package played

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/node"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

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

// Node runs the pods of a control plane. When the life of a pod is over, its object is removed, as a kubelet does.
type Node struct {
	// Live plays a pod. The context life ends when the pod is deleted, and Live returns soon after that. The context all ends with the node.
	Live func(all, life context.Context, pod *corev1.Pod) error
	// Hangs leaves the objects of deleted pods behind.
	Hangs bool

	client    kubernetes.Interface
	namespace string
	played    *node.Node
	mu        sync.Mutex
	err       error // the first one
}

// Run begins to run the pods, those of a namespace, until Stop.
func (n *Node) Run(ctx context.Context, env *suite.Suite, namespace string) (err error) {
	config := env.ControlPlane.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	if n.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	n.namespace = namespace
	n.played, err = node.Start(ctx, config, node.Options{Play: func(all, life context.Context, pod *corev1.Pod) bool {
		if err := n.Live(all, life, pod); err != nil {
			n.Note(all, fmt.Errorf("%s: %w", pod.Name, err))
			return false
		}
		return !n.Hangs
	}})
	return err
}

// Stop ends all lives, and returns the first error of any.
func (n *Node) Stop() error {
	n.played.Stop()
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

// Remove removes the object of a pod at once, if it is there, as a deletion by force does.
func (n *Node) Remove(ctx context.Context, pod string) error {
	err := n.client.CoreV1().Pods(n.namespace).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if apierrors.IsNotFound(err) {
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
