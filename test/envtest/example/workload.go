package example

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// The user's keys, and the one that says who owns what.
const (
	KeyCount         = "idalloc.dev/partition-count"
	KeyStrategy      = "idalloc.dev/partition-strategy"
	KeyFailoverAfter = "idalloc.dev/partition-failover-after"
	KeyOwners        = "idalloc.dev/partition-owners"
)

const (
	// container is the name of the one container of a pod.
	container = "worker"
	// look is how often a wait looks again.
	look = 100 * time.Millisecond
)

// Workload is a Deployment with partitions.
type Workload struct {
	Name string

	suite     *suite.Suite
	namespace *suite.Namespace
	strategy  string
}

// Spec says what a Workload runs.
type Spec struct {
	// Name is the Deployment's.
	Name     string
	Replicas int32
	// Annotations are the Deployment's.
	Annotations map[string]string
	// Command is what each pod runs. The environment has POD_NAME, POD_NAMESPACE, POD_UID and KUBECONFIG besides Env.
	Command []string
	Env     map[string]string
}

// NewWorkload creates a Deployment.
func NewWorkload(ctx context.Context, s *suite.Suite, namespace *suite.Namespace, spec Spec) (*Workload, error) {
	c := suite.Container(container, spec.Command...)
	for name, value := range spec.Env {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
	w := &Workload{Name: spec.Name, suite: s, namespace: namespace, strategy: cmp.Or(spec.Annotations[KeyStrategy], placement.DefaultName)}
	deployment := suite.Deployment(spec.Name, spec.Replicas, suite.PodSpec(c))
	deployment.Annotations = spec.Annotations
	return w, namespace.Create(ctx, deployment)
}

// Scale sets the replicas.
func (w *Workload) Scale(ctx context.Context, replicas int32) error {
	return w.namespace.Scale(ctx, kinds.Deployment, w.Name, replicas)
}

// Replicas returns how many pods the workload asks for.
func (w *Workload) Replicas(ctx context.Context) (int, error) {
	d, err := w.suite.Client.AppsV1().Deployments(w.namespace.Name).Get(ctx, w.Name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return int(*d.Spec.Replicas), nil
}

// Owners returns who owns what. It is empty before the first plan.
func (w *Workload) Owners(ctx context.Context) (placement.Owners, error) {
	d, err := w.suite.Client.AppsV1().Deployments(w.namespace.Name).Get(ctx, w.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return OwnersOf(d)
}

// OwnersOf returns who owns what by the annotations of a Deployment. It is empty before the first plan.
func OwnersOf(d *appsv1.Deployment) (placement.Owners, error) {
	text, ok := d.Annotations[KeyOwners]
	if !ok {
		return placement.Owners{}, nil
	}
	var row struct {
		Count  int             `json:"count"`
		Owners json.RawMessage `json:"owners"`
	}
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return nil, fmt.Errorf("example: %s: %w", KeyOwners, err)
	}
	return placement.ParseOwners(string(row.Owners), row.Count)
}

// Settled waits until the ids below n own all partitions as the strategy wants it, and returns who owns what.
func (w *Workload) Settled(ctx context.Context, n, partitions int) (placement.Owners, error) {
	ids := placement.Between(0, n-1)
	return w.Divided(ctx, n, slices.Collect(ids.All()), partitions)
}

// Divided waits until these ids, of n replicas, own all partitions as the strategy wants it, and returns who owns what.
func (w *Workload) Divided(ctx context.Context, n int, members []int, partitions int) (placement.Owners, error) {
	strategy, err := placement.Named(w.strategy)
	if err != nil {
		return nil, err
	}
	return w.Until(ctx, func(owners placement.Owners) bool {
		in := placement.Input{Partitions: partitions, Count: n, Members: members, Owners: owners}
		return slices.Equal(owners.IDs(), members) && owners.Equal(strategy(in))
	})
}

// Room lets the namespace have that many pods.
func (w *Workload) Room(ctx context.Context, pods int) error {
	const name = "room"
	quotas := w.suite.Client.CoreV1().ResourceQuotas(w.namespace.Name)
	_ = quotas.Delete(ctx, name, metav1.DeleteOptions{}) // there is none the first time
	hard := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(pods), resource.DecimalSI)}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if _, err := quotas.Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		got, err := quotas.Get(ctx, name, metav1.GetOptions{})
		return err == nil && got.Status.Hard.Pods().Value() == int64(pods), err
	})
	if err != nil {
		return fmt.Errorf("example: the quota of %d pods is not known: %w", pods, err)
	}
	return w.Annotate(ctx, map[string]string{"example/room": strconv.Itoa(pods)}) // the controller looks again sooner
}

// Running waits until n pods are Ready and no other one is there.
func (w *Workload) Running(ctx context.Context, n int) error {
	return wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		all, err := w.namespace.Pods(ctx, w.Name)
		if err != nil || len(all) != n {
			return false, err
		}
		ready, err := w.namespace.ReadyPods(ctx, w.Name)
		return len(ready) == n, err
	})
}

// Until waits until fits says yes to who owns what.
func (w *Workload) Until(ctx context.Context, fits func(placement.Owners) bool) (owners placement.Owners, err error) {
	err = wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		owners, err = w.Owners(ctx)
		return err == nil && fits(owners), err
	})
	if err != nil {
		err = fmt.Errorf("example: %s: the owners are %v: %w", w.Name, owners, err)
	}
	return owners, err
}

// Pods returns the live pods by the id that each holds. Pods without an id are left out.
func (w *Workload) Pods(ctx context.Context) (map[string]corev1.Pod, error) {
	pods, err := w.namespace.Pods(ctx, w.Name)
	held := map[string]corev1.Pod{}
	for _, pod := range pods {
		if id, ok := pod.Labels["idalloc.dev/instance-id"]; ok && pod.DeletionTimestamp == nil {
			held[id] = pod
		}
	}
	return held, err
}

// Signal sends a signal to the program of a pod. One that SIGKILL hits is started again in the same pod.
func (w *Workload) Signal(pod string, signal syscall.Signal) error {
	return w.suite.Node.Signal(w.namespace.Name, pod, container, signal)
}

// Pid returns the process of a pod's program, 0 if none runs.
func (w *Workload) Pid(pod string) int { return w.suite.Node.Pids(w.namespace.Name, pod)[container] }

// Said says whether the program of a pod has logged this text.
func (w *Workload) Said(pod, text string) bool {
	log, err := os.ReadFile(w.suite.Node.Logs(w.namespace.Name, pod, container))
	return err == nil && strings.Contains(string(log), text)
}

// Delete deletes a pod without grace period and waits until its object is gone. Its processes are killed.
func (w *Workload) Delete(ctx context.Context, pod corev1.Pod) error {
	now := int64(0)
	pods := w.suite.Client.CoreV1().Pods(w.namespace.Name)
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		got, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && got.UID != pod.UID, err
	})
}

// Annotate sets annotations of the Deployment, as a user does.
func (w *Workload) Annotate(ctx context.Context, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = w.suite.Client.AppsV1().Deployments(w.namespace.Name).Patch(ctx, w.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "kubectl-annotate"})
	return err
}

// Logs returns what the programs of the pods said, for a test that fails.
func (w *Workload) Logs(ctx context.Context) string {
	pods, err := w.namespace.Pods(ctx, w.Name)
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, pod := range pods {
		log, err := os.ReadFile(w.suite.Node.Logs(w.namespace.Name, pod.Name, container))
		fmt.Fprintf(&text, "-- %s (%v)\n%s\n", pod.Name, err, log)
	}
	return text.String()
}
