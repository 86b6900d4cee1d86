package node_test

import (
	"os"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// forever ends at once on SIGTERM, unlike a shell that waits for a child.
const forever = "exec sleep 100000"

func shell(name, script string) corev1.Container {
	return corev1.Container{Name: name, Image: "none", Command: []string{"/bin/sh", "-c", script}}
}

func sidecar(name, script string) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	c := shell(name, script)
	c.RestartPolicy = &always
	return c
}

func podSpec(containers ...corev1.Container) *corev1.PodSpec {
	grace := int64(5)
	return &corev1.PodSpec{Containers: containers, TerminationGracePeriodSeconds: &grace}
}

func template(spec *corev1.PodSpec) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "test"}}, Spec: *spec.DeepCopy()}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "test"}}
}

func deployment(replicas int32, spec *corev1.PodSpec) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(), Template: template(spec)},
	}
}

func createPod(ctx SpecContext, name string, spec *corev1.PodSpec) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"own": "label"}}, Spec: *spec.DeepCopy()}
	pod, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod
}

func getPod(ctx SpecContext, name string) func() (*corev1.Pod, error) {
	return func() (*corev1.Pod, error) {
		return client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

func podNames(ctx SpecContext) func() ([]string, error) {
	return func() ([]string, error) {
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		var names []string
		if err == nil {
			for i := range pods.Items {
				names = append(names, pods.Items[i].Name)
			}
		}
		slices.Sort(names)
		return names, err
	}
}

func scale(ctx SpecContext, replicas string) {
	GinkgoHelper()
	_, err := client.AppsV1().Deployments(namespace).Patch(ctx, "web", types.MergePatchType,
		[]byte(`{"spec":{"replicas":`+replicas+`}}`), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func available(ctx SpecContext) func() (int32, error) {
	return func() (int32, error) {
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration < d.Generation || d.Status.Replicas != d.Status.UpdatedReplicas {
			return -1, err
		}
		return d.Status.AvailableReplicas, nil
	}
}

func bePhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Status.Phase == phase }
}

func beReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func beUnready(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && !beReady(p) }

// lines returns a container's output so far.
func lines(pod, container string) func() []string {
	return func() []string {
		content, err := os.ReadFile(worker.Logs(namespace, pod, container))
		if err != nil {
			return nil
		}
		return strings.Fields(string(content))
	}
}

func running(pid int) bool { return syscall.Kill(pid, 0) == nil }
