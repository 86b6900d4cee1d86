//go:build e2e

package e2e

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/overlap"
)

var _ = Describe("A revision whose program ends as soon as it has an id", func() {
	It("linked leaves them so, too, and says what is wrong where people look", func(ctx SpecContext) {
		w, before := startLinked(ctx, 3)
		since := overlap.Now()
		w.revise(ctx, fails)
		var broken corev1.Pod
		Eventually(func(g Gomega, ctx context.Context) {
			pods, _ := w.others(ctx, g, before)
			i := slices.IndexFunc(pods, crashed)
			g.Expect(i).NotTo(Equal(-1), "it had an id, and its program ended")
			broken = pods[i]
			w.keptBy(ctx, g, before)
		}).WithContext(ctx).Should(Succeed())
		Expect(w.records(since)).To(ContainElement(And(HaveField("Pod", broken.Name), HaveField("ID", Not(Equal(overlap.None))))), "it worked under an id")
		Expect(ended(broken.Status.ContainerStatuses[0]).Message).To(ContainSubstring("FAIL_AFTER"), "what kubectl describe shows")

		By("waiting for half a minute until the pod that stands back tells why")
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(w.kubectl(ctx, "describe", "pod", broken.Name)).To(MatchRegexp(`Warning\s+WaitingForSlot\s.*this pod's program ended by itself`))
			w.keptBy(ctx, g, before)
		}).WithContext(ctx).Should(Succeed())

		w.undo(ctx)
		w.held(ctx, 3)
	}, SpecTimeout(2*patience))
})

// fails is a revision that takes an id and ends soon after. Its readiness probes find no server: a pod that was Ready for a moment
// would be available to Kubernetes, which ends an old pod then.
const fails = `{"name":"worker","env":[{"name":"FAIL_AFTER","value":"100ms"},{"name":"HTTP_ADDRESS","value":":9090"}]}`

// revise begins a revision with a patch of the container.
func (w *workload) revise(ctx context.Context, container string) {
	GinkgoHelper()
	Expect(w.kubectl(ctx, "patch", "deployment", name, "-p", `{"spec":{"template":{"spec":{"containers":[`+container+`]}}}}`)).Error().NotTo(HaveOccurred())
}

// keptBy expects that each of these pods has an id, by the word of the assignment, and works under it.
func (w *workload) keptBy(ctx context.Context, g Gomega, h holders) {
	now := w.assignment(ctx, g)
	for _, pod := range h {
		id := now.id(pod)
		g.Expect(id).NotTo(Equal(overlap.None), "%s has no id in %v", pod, now)
		last, err := w.lastSample(pod)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(last.ID).To(Equal(id), "what "+pod+" says about itself")
	}
}

// ended returns the newest end of a container, with exit code -1 if it did not end yet.
func ended(s corev1.ContainerStatus) corev1.ContainerStateTerminated {
	for _, state := range []corev1.ContainerState{s.State, s.LastTerminationState} {
		if state.Terminated != nil {
			return *state.Terminated
		}
	}
	return corev1.ContainerStateTerminated{ExitCode: -1}
}

// create creates a Deployment beside the workload. Its pods are gone before the spec is over.
func (w *workload) create(ctx context.Context, d *appsv1.Deployment) {
	GinkgoHelper()
	_, err := client.AppsV1().Deployments(w.namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
		Expect(w.kubectl(ctx, "delete", "deployment", d.Name, "--ignore-not-found", "--cascade=foreground", "--timeout=2m")).Error().NotTo(HaveOccurred())
	}, NodeTimeout(patience))
}
