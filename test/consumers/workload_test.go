package consumers

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	// look is how often a wait looks again.
	look = 100 * time.Millisecond
	// container is the name of the one container of a pod.
	container = "consumer"
)

// workload is a Deployment in a namespace of its own.
type workload struct {
	t         *testing.T
	suite     *suite.Suite
	namespace *suite.Namespace
	name      string
}

// program returns a pod that runs one program.
func program(path string, environment map[string]string) *corev1.PodSpec {
	c := suite.Container(container, path)
	for name, value := range environment {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
	return suite.PodSpec(c)
}

// deploy creates a Deployment and waits until its pods have their ids.
func deploy(ctx context.Context, t *testing.T, env *suite.Suite, name string, replicas int32, spec *corev1.PodSpec) *workload {
	t.Helper()
	namespace, err := env.NewNamespace(ctx)
	must(t, err)
	w := &workload{t: t, suite: env, namespace: namespace, name: name}
	deployment := suite.Deployment(name, replicas, spec)
	// The programs have no readiness probe. So a rolling update replaces the next pod when the new one has run for a second.
	deployment.Spec.MinReadySeconds = 1
	must(t, namespace.Create(ctx, deployment))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.logs(context.WithoutCancel(ctx)))
		}
	})
	w.settled(ctx, replicas)
	return w
}

// scale sets the replicas and waits until that many pods have their ids.
func (w *workload) scale(ctx context.Context, replicas int32) {
	w.t.Helper()
	must(w.t, w.namespace.Scale(ctx, kinds.Deployment, w.name, replicas))
	w.settled(ctx, replicas)
}

// restart replaces all pods in a rolling update, as kubectl rollout restart does, and waits until it is over.
func (w *workload) restart(ctx context.Context, replicas int32) {
	w.t.Helper()
	before := w.pods(ctx)
	w.patch(ctx, `{"spec":{"template":{"metadata":{"annotations":{"example/restarted":"yes"}}}}}`)
	w.settled(ctx, replicas)
	for id, pod := range w.pods(ctx) {
		if before[id] == pod {
			w.t.Errorf("%s has id %d still", pod, id)
		}
	}
}

// kill kills the program of an id's pod. It is started again in the same pod.
func (w *workload) kill(ctx context.Context, id int) error {
	return w.suite.Node.Signal(w.namespace.Name, w.pods(ctx)[id], container, syscall.SIGKILL)
}

func (w *workload) patch(ctx context.Context, patch string) {
	w.t.Helper()
	_, err := w.suite.Client.AppsV1().Deployments(w.namespace.Name).Patch(ctx, w.name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	must(w.t, err)
}

// settled waits until there are so many pods and no others, all of the newest template, and each id below their number is held.
func (w *workload) settled(ctx context.Context, replicas int32) {
	w.t.Helper()
	begin := time.Now()
	w.until(ctx, fmt.Sprintf("%d pods have their ids", replicas), func(ctx context.Context) (bool, error) {
		d, err := w.suite.Client.AppsV1().Deployments(w.namespace.Name).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != replicas || d.Status.AvailableReplicas != replicas {
			return false, err
		}
		all, err := w.namespace.Pods(ctx, w.name)
		if err != nil || len(all) != int(replicas) {
			return false, err
		}
		held := ids(all)
		for id := range int(replicas) {
			if held[id] == "" {
				return false, nil
			}
		}
		return true, nil
	})
	w.t.Logf("%d pods have their ids after %s", replicas, time.Since(begin).Round(time.Millisecond))
}

// pods returns the names of the pods by the id that each holds.
func (w *workload) pods(ctx context.Context) map[int]string {
	w.t.Helper()
	all, err := w.namespace.Pods(ctx, w.name)
	must(w.t, err)
	return ids(all)
}

func ids(pods []corev1.Pod) map[int]string {
	held := map[int]string{}
	for _, pod := range pods {
		if id, err := strconv.Atoi(pod.Labels["idalloc.dev/instance-id"]); err == nil && pod.DeletionTimestamp == nil {
			held[id] = pod.Name
		}
	}
	return held
}

func (w *workload) until(ctx context.Context, what string, fits func(context.Context) (bool, error)) {
	w.t.Helper()
	if err := wait.PollUntilContextCancel(ctx, look, true, fits); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// logs returns what all of the workload's programs said, for a test that fails.
func (w *workload) logs(ctx context.Context) string {
	pods, err := w.namespace.Pods(ctx, w.name)
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, pod := range pods {
		said, err := os.ReadFile(w.suite.Node.Logs(w.namespace.Name, pod.Name, pod.Spec.Containers[0].Name))
		fmt.Fprintf(&text, "-- %s (%v)\n%s\n", pod.Name, err, said)
	}
	return text.String()
}
