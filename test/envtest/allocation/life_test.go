package allocation

import (
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

var _ = Describe("a Deployment's pods", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, kinds.Deployment) })

	It("claim an id each, ten at once", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 10, w.podSpec()))).To(Succeed())
		w.settled(ctx, 10)
	})

	It("wait for room, say for what, and take it when there is some", func(ctx SpecContext) {
		// With the default strategy and one replica, a new revision's pod starts before there is room.
		Expect(w.Create(ctx, suite.Deployment("worker", 1, w.podSpec()))).To(Succeed())
		old := w.settled(ctx, 1)[0]
		w.restart(ctx)
		var waiter string
		Eventually(func(g Gomega) {
			waiter = w.newcomer(ctx, g, map[int]string{0: old}, 2)
			g.Expect(w.log(waiter)).To(ContainSubstring("waiting for a slot"))
		}).WithContext(ctx).Should(Succeed())
		Expect(w.log(waiter)).To(And(ContainSubstring("Deployment/worker has count 1"), ContainSubstring("maxSurge: 0")))
		Expect(w.assignment(ctx)).To(HaveKeyWithValue(0, old))
		// The old revision's ReplicaSet would replace it with a pod that may be faster than the waiter.
		w.allowPods(ctx, 1)
		w.forceDelete(ctx, old)
		Eventually(func() string { return w.assignment(ctx)[0] }).WithContext(ctx).Should(Equal(waiter))
	})

	It("keep their ids when their containers restart in place", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 3, w.podSpec()))).To(Succeed())
		before := w.settled(ctx, 3)
		first, err := w.identity(ctx, *w.pod(ctx, before[1]))
		Expect(err).NotTo(HaveOccurred())
		Expect(env.Node.Signal(w.Name, before[1], "idalloc", syscall.SIGKILL)).To(Succeed())
		Eventually(func() int32 { return restarts(w.pod(ctx, before[1]), "idalloc") }).WithContext(ctx).Should(BeNumerically(">", 0))
		Expect(w.settled(ctx, 3)).To(Equal(before))
		again, err := w.identity(ctx, *w.pod(ctx, before[1]))
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Token).To(BeNumerically(">=", first.Token), "a token never falls")
	})
})

func restarts(pod *corev1.Pod, container string) int32 {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == container {
			return s.RestartCount
		}
	}
	return 0
}
