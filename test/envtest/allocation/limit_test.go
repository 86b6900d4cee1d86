package allocation

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const filler = "example.com/filler"

// pad leaves so many bytes of the owner's annotations for new entries.
func (w *workload) pad(ctx context.Context, free int) {
	GinkgoHelper()
	w.annotate(ctx, map[string]any{filler: strings.Repeat("x", assignment.SizeLimit-free-len(filler)-assignment.Size(w.owner(ctx).Annotations))})
}

var _ = Describe("an owner whose annotations are full", func() {
	It("serves the slots of dead pods, and lets a pod too many wait for room", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		Expect(w.Create(ctx, suite.Deployment("worker", 3, w.podSpec()))).To(Succeed())
		held := w.settled(ctx, 3)
		w.pad(ctx, 0)

		Expect(w.Scale(ctx, store.Deployment, "worker", 4)).To(Succeed())
		var waits string
		Eventually(func(g Gomega) {
			waits = w.newcomer(ctx, g, held, 4)
			g.Expect(w.log(waits)).To(ContainSubstring("room on Deployment/worker: the owner's annotations would take"))
		}).WithContext(ctx).Should(Succeed())
		Eventually(func() []corev1.Event { return w.told(ctx) }).WithContext(ctx).Should(ContainElement(And(
			HaveField("Reason", "AssignmentTooLarge"), HaveField("Type", corev1.EventTypeWarning),
			HaveField("Message", ContainSubstring("at most 3 replicas fit: scale down to that, shorten the workload's name, or remove other annotations")))))

		By("a pod that is lost")
		lost := held[1]
		w.deletePod(ctx, lost)
		Eventually(func(g Gomega) {
			owner := w.owner(ctx)
			g.Expect(owner.Clean()).To(BeTrue())
			g.Expect(owner.Record.State.Slots).To(HaveLen(3))
			g.Expect(owner.Record.State.Slots).To(HaveKeyWithValue(0, held[0]))
			g.Expect(owner.Record.State.Slots).To(HaveKeyWithValue(2, held[2]))
			g.Expect(owner.Record.State.Slots[1]).NotTo(Or(BeEmpty(), Equal(lost)))
			id, err := w.identity(ctx, *w.pod(ctx, owner.Record.State.Slots[1]))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(id).To(And(HaveField("State", identity.StateAssigned), HaveField("ID", 1), HaveField("Count", 4)))
		}).WithContext(ctx).Should(Succeed())
		Expect(assignment.Size(w.owner(ctx).Annotations)).To(BeNumerically("<=", assignment.SizeLimit))

		By("room")
		w.annotate(ctx, map[string]any{filler: nil})
		now := w.settled(ctx, 4)
		Expect(now).To(HaveKeyWithValue(0, held[0]))
		Expect(now).To(HaveKeyWithValue(2, held[2]))
		Expect(w.pod(ctx, waits).Status.InitContainerStatuses).To(HaveEach(HaveField("RestartCount", BeZero())), "it waits and does not end")
		w.verified(ctx)
	})

	It("leaves holders their ids where a foreign write cannot be undone, until it can", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		held := map[string]*idcontext.Instance{}
		for _, pod := range w.idle(ctx, 2) {
			held[pod.Name] = w.instance(ctx, pod.Name)
		}
		ids := map[string]int{}
		for pod, i := range held {
			id, err := i.Wait(ctx)
			Expect(err).NotTo(HaveOccurred())
			ids[pod] = id.ID
		}
		w.annotate(ctx, map[string]any{assignment.DefaultKey: "{}", filler: strings.Repeat("x", assignment.AnnotationLimit-2*1024)})

		Expect(w.idalloc(ctx, "", "gc", "deployment/worker", "-n", w.Name)).To(And(
			HaveField("Code", 1), HaveField("Stderr", ContainSubstring("the owner's annotations would take"))))
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		known := map[int]string{}
		for pod, id := range ids {
			known[id] = pod
		}
		var third *idcontext.Instance
		Eventually(func(g Gomega) {
			name := w.newcomer(ctx, g, known, 3)
			third = w.instance(ctx, name)
		}).WithContext(ctx).Should(Succeed())
		Eventually(func() string { return waitingFor(ctx, third) }).WithContext(ctx).Should(HavePrefix("room on Deployment/worker: the owner's annotations would take"))
		for pod, i := range held {
			Expect(i.Current()).To(And(HaveField("State", identity.StateAssigned), HaveField("ID", ids[pod])))
		}

		w.annotate(ctx, map[string]any{filler: nil})
		Expect(third.Wait(ctx)).To(HaveField("ID", 2))
		Eventually(func() bool { return w.owner(ctx).Clean() }).WithContext(ctx).Should(BeTrue())
		for pod, i := range held {
			Expect(i.Current()).To(And(HaveField("State", identity.StateAssigned), HaveField("ID", ids[pod])))
			Expect(w.assignment(ctx)).To(HaveKeyWithValue(ids[pod], pod))
		}
	})
})
