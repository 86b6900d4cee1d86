package allocation

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
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
	It("serves the slots of dead pods, and lets a pod too many wait for room", Label(nightly), func(ctx SpecContext) {
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
})
