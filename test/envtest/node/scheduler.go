package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// binders is how many pods are bound at once: one write each.
	binders = 8
	// maxUnbound is how many pods may wait for it; more is no test that this node is for.
	maxUnbound = 10000
)

func schedulable(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 && !terminal(pod.Status.Phase)
}

// schedule queues a pod for binding. A pod may be queued twice; the second
// binding fails and does no harm. The caller holds n.mu.
func (n *Node) schedule(pod *corev1.Pod) {
	select {
	case n.binding <- pod:
	default:
		n.log.Info("too many pods to schedule", "pod", pod.Name)
	}
}

// bind assigns queued pods to this node until Stop.
func (n *Node) bind() {
	for {
		select {
		case <-n.ctx.Done():
			return
		case pod := <-n.binding:
			if err := n.retry(n.ctx, func(ctx context.Context) error { return n.bindOnce(ctx, pod) }); err != nil {
				return // the node was stopped
			}
		}
	}
}

func (n *Node) bindOnce(ctx context.Context, pod *corev1.Pod) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: name},
	}
	err := n.client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return nil // gone, bound already, or not to be bound: nothing left to do
	default:
		return err
	}
}
