//go:build e2e

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deletionCost decides which pods a ReplicaSet ends first: the cheapest.
const deletionCost = "controller.kubernetes.io/pod-deletion-cost"

// rankedLabel is a label of each pod that no selector asks for. A ReplicaSet's status says how many pods have
// it as the template has it, which tells whether the controller knows what was changed together with it.
const rankedLabel = "idalloc.test/ranked"

// Each example is started once and then goes through a day of a workload.
var _ = Describe("An example", func() {
	for _, e := range []example{files, sidecar, linked} {
		Context(string(e), Ordered, ContinueOnFailure, func() { life(e) })
	}
})

func life(e example) {
	var w *workload

	BeforeAll(func(ctx SpecContext) {
		w = newWorkload(ctx, e)
		w.apply(ctx)
	})

	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			w.dump(ctx)
		}
		w.expectNoOverlap()
	})

	It("has five replicas that hold the ids 0 to 4 once each", Label(mainFlow), func(ctx SpecContext) {
		w.held(ctx, 5)
	}, SpecTimeout(patience))

	It("publishes the identity inside each pod", Label(mainFlow), func(ctx SpecContext) {
		for id, pod := range w.held(ctx, 5) {
			w.expectPublished(ctx, pod, id, 5)
		}
	}, SpecTimeout(patience))

	It("keeps every id when the manifests are applied again", func(ctx SpecContext) {
		before := w.held(ctx, 5)
		w.apply(ctx)
		Expect(w.held(ctx, 5)).To(Equal(before))
	}, SpecTimeout(patience))

	It("gives the id of each deleted pod to its replacement", func(ctx SpecContext) {
		before := w.held(ctx, 5)
		for id := range upTo(5) {
			By(fmt.Sprintf("deleting %s, which holds %d", before[id], id))
			Expect(w.kubectl(ctx, "delete", "pod", before[id])).Error().NotTo(HaveOccurred())
			after := w.held(ctx, 5)
			expectReplaced(before, after, id)
			before = after
		}
	}, SpecTimeout(5*patience))

	It("gives the id of an evicted pod to its replacement", Label(mainFlow), func(ctx SpecContext) {
		before := w.held(ctx, 5)
		Expect(client.PolicyV1().Evictions(w.namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: before[4], Namespace: w.namespace}})).To(Succeed())
		expectReplaced(before, w.held(ctx, 5), 4)
	}, SpecTimeout(patience))

	It("keeps the ids while it scales from 5 to 8 to 3 to 5", func(ctx SpecContext) {
		five := w.held(ctx, 5)
		w.scale(ctx, "8")
		eight := w.held(ctx, 8)
		expectKept(five, eight)
		w.scale(ctx, "3")
		three := w.held(ctx, 3)
		w.scale(ctx, "5")
		expectKept(three, w.held(ctx, 5))
		// Last, so that a failure does not hide the others.
		Expect(three).To(Equal(holders{0: five[0], 1: five[1], 2: five[2]}), "the highest ids shall end first: "+deletionCost)
	}, SpecTimeout(4*patience))

	It("moves the survivors when a scale-down ends the low ids", func(ctx SpecContext) {
		before := w.held(ctx, 5)
		for id, pod := range before {
			if e == files { // the watcher takes what the init container claimed, and writes its own cost then
				Eventually(func(ctx context.Context) (string, error) {
					return w.kubectl(ctx, "logs", pod, "-c", idalloc)
				}).WithContext(ctx).Should(ContainSubstring(`"state":"assigned"`))
			}
			// Against the cost that idalloc writes: the lowest ids go first. All are below 0, which is the cost of a pod that has given its slot up.
			Expect(w.kubectl(ctx, "annotate", "pod", pod, "--overwrite", fmt.Sprintf("%s=%d", deletionCost, id-1000))).Error().NotTo(HaveOccurred())
			Expect(w.kubectl(ctx, "label", "pod", pod, "--overwrite", rankedLabel+"=yes")).Error().NotTo(HaveOccurred())
		}
		Eventually(func(g Gomega, ctx context.Context) {
			sets, err := client.AppsV1().ReplicaSets(w.namespace).List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			known := int32(0)
			for _, rs := range sets.Items {
				g.Expect(rs.Status.ReadyReplicas).To(Equal(rs.Status.Replicas))
				known += rs.Status.Replicas - rs.Status.FullyLabeledReplicas
			}
			g.Expect(known).To(BeEquivalentTo(len(before)), "pods whose costs the ReplicaSet's controller knows")
		}).WithContext(ctx).Should(Succeed())
		w.scale(ctx, "3")
		after := w.held(ctx, 3)
		Expect(after).To(HaveKeyWithValue(2, before[2]), "an id moved although it is below the count")
		Expect([]string{after[0], after[1]}).To(ConsistOf(before[3], before[4]))
		w.scale(ctx, "5")
		expectKept(after, w.held(ctx, 5))
	}, SpecTimeout(2*patience))

	It("keeps the id while a container crashes and restarts", func(ctx SpecContext) {
		before := w.held(ctx, 5)
		for i, container := range w.containers() {
			By("crashing " + container + " in " + before[i])
			restarts := w.restarts(ctx, before[i], container)
			// The answer may be lost: the process that kubectl talks to ends with the container.
			out, err := w.kubectl(ctx, "exec", before[i], "-c", container, "--", program, "crash")
			GinkgoWriter.Println(out, err)
			Eventually(func(ctx context.Context) int32 { return w.restarts(ctx, before[i], container) }).WithContext(ctx).Should(BeNumerically(">", restarts))
			Expect(w.held(ctx, 5)).To(Equal(before))
		}
	}, SpecTimeout(2*patience))

	It("rolls to a new revision and back without two holders of an id", Label(mainFlow), func(ctx SpecContext) {
		Expect(w.kubectl(ctx, "rollout", "restart", "deployment", name)).Error().NotTo(HaveOccurred())
		w.held(ctx, 5)
		By("undoing it, which also puts an old assignment back")
		Expect(w.kubectl(ctx, "rollout", "undo", "deployment", name)).Error().NotTo(HaveOccurred())
		w.held(ctx, 5)
	}, SpecTimeout(3*patience))
}

// expectReplaced: a new pod has the id, and no other pod moved.
func expectReplaced(before, after holders, freed int) {
	GinkgoHelper()
	for id, pod := range before {
		if id != freed {
			Expect(after).To(HaveKeyWithValue(id, pod), "an id moved although its holder lives")
			continue
		}
		Expect(after[id]).NotTo(Equal(pod), "the slot of a dead pod was not freed")
	}
}

// expectKept: who had an id has it still.
func expectKept(before, after holders) {
	GinkgoHelper()
	for id, pod := range before {
		Expect(after).To(HaveKeyWithValue(id, pod), "scaling up moved an id")
	}
}

// containers returns those whose crash is tried.
func (w *workload) containers() []string {
	if w.manifest.container("idalloc") == nil {
		return []string{name}
	}
	return []string{name, "idalloc"}
}

func (w *workload) restarts(ctx context.Context, pod, container string) int32 {
	GinkgoHelper()
	p, err := client.CoreV1().Pods(w.namespace).Get(ctx, pod, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return list[i].RestartCount
			}
		}
	}
	Fail(pod + " has no container " + container)
	return 0
}
