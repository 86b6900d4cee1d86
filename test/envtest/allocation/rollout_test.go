package allocation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

func recreate(s *appsv1.DeploymentSpec) { s.Strategy.Type = appsv1.RecreateDeploymentStrategyType }

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

// stall begins a revision whose pods never get Ready.
func (w *workload) stall(ctx context.Context) {
	GinkgoHelper()
	w.patchOwner(ctx, types.JSONPatchType, `[{"op":"add","path":"/spec/template/spec/containers/0/readinessProbe","value":{"exec":{"command":["/bin/false"]}}}]`)
}

// stalled waits for n pods, not Terminating, of a revision that stall began.
func (w *workload) stalled(ctx context.Context, n int) []corev1.Pod {
	GinkgoHelper()
	var pods []corev1.Pod
	Eventually(func(g Gomega) {
		all, err := w.Pods(ctx, "worker")
		g.Expect(err).NotTo(HaveOccurred())
		pods = slices.DeleteFunc(all, func(p corev1.Pod) bool {
			return p.Spec.Containers[0].ReadinessProbe == nil || p.DeletionTimestamp != nil
		})
		g.Expect(pods).To(HaveLen(n))
	}).WithContext(ctx).Should(Succeed())
	return pods
}

// undo does what kubectl rollout undo does: the template and the annotations of the ReplicaSet of the
// first revision are put onto the Deployment.
func (w *workload) undo(ctx context.Context) {
	GinkgoHelper()
	sets, err := env.Client.AppsV1().ReplicaSets(w.Name).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, rs := range sets.Items {
		if rs.Annotations["deployment.kubernetes.io/revision"] != "1" {
			continue
		}
		d, err := env.Client.AppsV1().Deployments(w.Name).Get(ctx, "worker", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		template := rs.Spec.Template.DeepCopy()
		delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		annotations := map[string]string{"deployment.kubernetes.io/revision": d.Annotations["deployment.kubernetes.io/revision"]}
		for k, v := range rs.Annotations {
			if _, own := annotations[k]; !own && k != "deployment.kubernetes.io/desired-replicas" && k != "deployment.kubernetes.io/max-replicas" && k != "deployment.kubernetes.io/revision-history" {
				annotations[k] = v
			}
		}
		patch := []map[string]any{
			{"op": "replace", "path": "/spec/template", "value": template},
			{"op": "replace", "path": "/metadata/annotations", "value": annotations},
		}
		w.patchOwner(ctx, types.JSONPatchType, mustJSON(patch))
		return
	}
	Fail("there is no first revision")
}

var _ = Describe("a rollout", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	DescribeTable("completes by itself", func(ctx SpecContext, n int, s strategy) {
		w.roll(ctx, n, s)
		w.restart(ctx)
		w.rolled(ctx, n)
	},
		Entry("3, default strategy", 3, rolling("25%", "25%")),
		Entry("10, default strategy", Label(nightly), 10, rolling("25%", "25%")),
		Entry("3, maxSurge 0", Label(nightly), 3, rolling("0", "1")),
		Entry("3, Recreate", Label(nightly), 3, recreate),
	)

	It("hands one id over at a time with maxSurge 100% and maxUnavailable 0", Label(nightly), func(ctx SpecContext) {
		w.roll(ctx, 4, rolling("100%", "0"))
		first, err := w.Pods(ctx, "worker")
		Expect(err).NotTo(HaveOccurred())
		older := map[string]bool{}
		for _, p := range first {
			older[p.Name] = true
		}
		looking, stop := context.WithCancel(ctx)
		var watching sync.WaitGroup
		defer watching.Wait()
		defer stop()
		most := 0
		watching.Go(func() {
			defer GinkgoRecover()
			for looking.Err() == nil {
				if n, err := w.underWay(looking, older); err == nil {
					most = max(most, n)
				}
			}
		})
		w.restart(ctx)
		w.rolled(ctx, 4)
		stop()
		watching.Wait()
		Expect(most).To(Equal(1), "hand-overs under way at once")
	})
})

// underWay counts the hand-overs that are under way: requests, and new pods that hold a slot and are not Ready. The
// pods are read last, and who is Ready stays so, so it counts too few rather than too many.
func (w *workload) underWay(ctx context.Context, older map[string]bool) (int, error) {
	owner, err := w.store.Get(ctx, w.ref)
	if err != nil {
		return 0, err
	}
	pods, err := w.Pods(ctx, "worker")
	if err != nil {
		return 0, err
	}
	n := len(owner.Record.State.Handover)
	holders := slices.Collect(maps.Values(owner.Record.State.Slots))
	for _, p := range pods {
		if !older[p.Name] && slices.Contains(holders, p.Name) && p.Status.Phase != corev1.PodFailed && p.DeletionTimestamp == nil && !suite.Ready(&p) {
			n++
		}
	}
	return n, nil
}
