package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Namespace is a spec's own namespace.
type Namespace struct {
	// Name was chosen by the API server.
	Name string

	suite  *Suite
	client kubernetes.Interface
}

// NewNamespace creates a namespace with the service account Account, to which it
// grants rules, or Rules() when none are given.
func (s *Suite) NewNamespace(ctx context.Context, rules ...rbacv1.PolicyRule) (*Namespace, error) {
	created, err := s.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "idalloc-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("suite: create a namespace: %w", err)
	}
	n := &Namespace{Name: created.Name, suite: s, client: s.Client}
	if len(rules) == 0 {
		rules = Rules()
	}
	if err := n.Grant(ctx, Account, rules...); err != nil {
		return nil, err
	}
	if err := n.awaitDefaultAccount(ctx); err != nil {
		return nil, fmt.Errorf("suite: default service account of %s: %w", n.Name, err)
	}
	return n, nil
}

// awaitDefaultAccount returns when pods without a service account can be created.
func (n *Namespace) awaitDefaultAccount(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := n.client.CoreV1().ServiceAccounts(n.Name).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// Delete begins to delete the namespace and all in it, pods without grace
// period. It does not wait.
func (n *Namespace) Delete(ctx context.Context) error {
	now := int64(0)
	pods := n.client.CoreV1().Pods(n.Name)
	if err := n.client.CoreV1().Namespaces().Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("suite: delete namespace %s: %w", n.Name, err)
	}
	return pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
}

// Config returns the connection of the service account Account, for code under
// test that runs in the test's own process.
func (n *Namespace) Config(ctx context.Context) (*rest.Config, error) {
	return n.suite.ControlPlane.ServiceAccountConfig(ctx, n.Name, Account)
}

// Create creates Deployments, StatefulSets, ReplicaSets, Jobs and Pods in the
// namespace.
func (n *Namespace) Create(ctx context.Context, objects ...metav1.Object) error {
	for _, object := range objects {
		if err := n.create(ctx, object); err != nil {
			return fmt.Errorf("suite: create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

func (n *Namespace) create(ctx context.Context, object metav1.Object) (err error) {
	options := metav1.CreateOptions{}
	switch o := object.(type) {
	case *appsv1.Deployment:
		_, err = n.client.AppsV1().Deployments(n.Name).Create(ctx, o, options)
	case *appsv1.StatefulSet:
		_, err = n.client.AppsV1().StatefulSets(n.Name).Create(ctx, o, options)
	case *appsv1.ReplicaSet:
		_, err = n.client.AppsV1().ReplicaSets(n.Name).Create(ctx, o, options)
	case *batchv1.Job:
		_, err = n.client.BatchV1().Jobs(n.Name).Create(ctx, o, options)
	case *corev1.Pod:
		_, err = n.client.CoreV1().Pods(n.Name).Create(ctx, o, options)
	default:
		err = errors.New("the suite does not create this kind")
	}
	return err
}

// Scale sets the replicas of a Deployment, StatefulSet or ReplicaSet, or the
// parallelism of a Job.
func (n *Namespace) Scale(ctx context.Context, kind, name string, replicas int32) (err error) {
	options := metav1.PatchOptions{}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	switch kind {
	case "Deployment":
		_, err = n.client.AppsV1().Deployments(n.Name).Patch(ctx, name, types.MergePatchType, patch, options)
	case "StatefulSet":
		_, err = n.client.AppsV1().StatefulSets(n.Name).Patch(ctx, name, types.MergePatchType, patch, options)
	case "ReplicaSet":
		_, err = n.client.AppsV1().ReplicaSets(n.Name).Patch(ctx, name, types.MergePatchType, patch, options)
	case "Job":
		patch = fmt.Appendf(nil, `{"spec":{"parallelism":%d}}`, replicas)
		_, err = n.client.BatchV1().Jobs(n.Name).Patch(ctx, name, types.MergePatchType, patch, options)
	default:
		err = fmt.Errorf("kind %q has no replicas", kind)
	}
	if err != nil {
		return fmt.Errorf("suite: scale %s/%s: %w", kind, name, err)
	}
	return nil
}

// Pods returns the pods of the workload that a builder made under name, finished
// and terminating ones included, by name.
func (n *Namespace) Pods(ctx context.Context, name string) ([]corev1.Pod, error) {
	list, err := n.client.CoreV1().Pods(n.Name).List(ctx, metav1.ListOptions{LabelSelector: label + "=" + name})
	if err != nil {
		return nil, fmt.Errorf("suite: pods of %s: %w", name, err)
	}
	return list.Items, nil
}

// ReadyPods returns those of Pods that are Ready and not terminating.
func (n *Namespace) ReadyPods(ctx context.Context, name string) ([]corev1.Pod, error) {
	pods, err := n.Pods(ctx, name)
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || !Ready(&p) }), err
}

// Ready says whether a pod's Ready condition is true.
func Ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
