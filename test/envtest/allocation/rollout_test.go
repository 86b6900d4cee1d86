package allocation

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// linkedSpec is the layout of config/examples/linked: one container, Ready while it works under an id.
func (w *workload) linkedSpec(command ...string) *corev1.PodSpec {
	worker := suite.Container("worker", command...)
	worker.Env = append(worker.Env, corev1.EnvVar{Name: "PROBE_DIR", Value: w.probe}, corev1.EnvVar{Name: "HTTP_ADDRESS", Value: "$(POD_IP):8080"})
	worker.ReadinessProbe = readyz(8080)
	return suite.PodSpec(worker)
}

// strategy is a Deployment's way to roll.
type strategy func(*appsv1.DeploymentSpec)

func rolling(surge, unavailable string) strategy {
	return func(s *appsv1.DeploymentSpec) {
		a, b := intstr.Parse(surge), intstr.Parse(unavailable)
		s.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &a, MaxUnavailable: &b}
	}
}

// roll starts n pods with this strategy.
func (w *workload) roll(ctx context.Context, n int, s strategy) {
	GinkgoHelper()
	w.start(ctx, n, w.linkedSpec(testworker, "linked"), s)
}

// start starts n pods of this kind.
func (w *workload) start(ctx context.Context, n int, spec *corev1.PodSpec, s strategy) {
	GinkgoHelper()
	d := suite.Deployment("worker", int32(n), spec) //nolint:gosec // small
	s(&d.Spec)
	Expect(w.Create(ctx, d)).To(Succeed())
	w.rolled(ctx, n)
}

// rolled waits until the controller says that the rollout is complete and every id is held by a Ready pod.
func (w *workload) rolled(ctx context.Context, n int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		d, err := env.Client.AppsV1().Deployments(w.Name).Get(ctx, "worker", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		s := d.Status
		g.Expect([]int32{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas}).To(HaveEach(BeEquivalentTo(n)), "replicas, updated, ready")
		owner := w.owner(ctx)
		g.Expect(owner.Record.Problems).To(BeEmpty())
		g.Expect(owner.Record.State.Handover).To(BeEmpty())
		pods, err := w.ReadyPods(ctx, "worker")
		g.Expect(err).NotTo(HaveOccurred())
		names := make([]string, 0, len(pods))
		for _, p := range pods {
			names = append(names, p.Name)
		}
		holders := owner.Record.State.Slots
		g.Expect(holders).To(HaveLen(n))
		for id := range n {
			g.Expect(names).To(ContainElement(holders[id]), fmt.Sprintf("the holder of %d", id))
		}
	}).WithContext(ctx).Should(Succeed())
}

var _ = Describe("a rollout", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	It("completes by itself with the default strategy", func(ctx SpecContext) {
		w.roll(ctx, 3, rolling("25%", "25%"))
		w.restart(ctx)
		w.rolled(ctx, 3)
	})
})
