package allocation

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// interrupted lets a new count end the function's context.
func interrupted(o *idcontext.Options) { o.KeepOnCountChange = false }

var _ = Describe("Run", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	It("keeps the slot until the function has returned, and then gives it back", func(ctx SpecContext) {
		p := w.work(ctx, w.idle(ctx, 1)[0].Name, interrupted)
		Expect(p.begins(ctx)).To(And(HaveField("ID", 0), HaveField("Count", 1)))
		p.end()
		Expect(p.told(ctx)).To(MatchError(context.Canceled))
		Consistently(p.ended, 300*time.Millisecond).ShouldNot(Receive())
		Expect(w.assignment(ctx)).To(Equal(assignment.Slots{0: p.pod}), "the work has not stopped")
		p.stop <- context.Canceled
		Eventually(p.ended).WithContext(ctx).Should(Receive(BeNil()))
		Expect(w.assignment(ctx)).To(BeEmpty())
	})

	It("returns the function's error, and nil when it is done", func(ctx SpecContext) {
		pod := w.idle(ctx, 1)[0].Name
		for _, result := range []error{errors.New("broken"), nil} {
			p := w.work(ctx, pod, interrupted)
			p.begins(ctx)
			p.quit <- result
			var returned error
			Eventually(p.ended).WithContext(ctx).Should(Receive(&returned))
			Expect(errors.Is(returned, result)).To(BeTrue(), "Run returned %v", returned)
		}
	})

	It("calls again with the new count, and keeps the id meanwhile", func(ctx SpecContext) {
		p := w.work(ctx, w.idle(ctx, 1)[0].Name, interrupted)
		first := p.begins(ctx)
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		Expect(p.told(ctx)).To(MatchError(idcontext.ErrCountChanged))
		p.stop <- nil
		Expect(p.begins(ctx)).To(And(HaveField("ID", 0), HaveField("Count", 3), HaveField("Epoch", first.Epoch)))
		p.end()
		p.stop <- nil
		Eventually(p.ended).WithContext(ctx).Should(Receive(BeNil()))
	})

	It("lets the function run on over a new count, if told to", func(ctx SpecContext) {
		p := w.work(ctx, w.idle(ctx, 1)[0].Name)
		p.begins(ctx)
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		Consistently(p.causes, 500*time.Millisecond).ShouldNot(Receive())
		p.end()
		p.stop <- nil
		Eventually(p.ended).WithContext(ctx).Should(Receive(BeNil()))
	})

	It("moves from a slot that is above the count only after the function has returned", func(ctx SpecContext) {
		workers, ids := map[int]*worker{}, map[int]identity.Identity{}
		for _, pod := range w.idle(ctx, 2) {
			p := w.work(ctx, pod.Name)
			id := p.begins(ctx)
			workers[id.ID], ids[id.ID] = p, id
		}
		low, high := workers[0], workers[1]
		By("ending the pod with the low id and scaling to one, so that the other has to move")
		low.end() // before its pod goes
		low.stop <- nil
		Eventually(low.ended).WithContext(ctx).Should(Receive(BeNil()))
		w.rank(ctx, map[string]int{low.pod: 0, high.pod: 1})
		Expect(w.Scale(ctx, store.Deployment, "worker", 1)).To(Succeed())
		Expect(high.told(ctx)).To(MatchError(idcontext.ErrRevoked))
		Consistently(func() string { return w.assignment(ctx)[1] }, 300*time.Millisecond).Should(Equal(high.pod), "the work under 1 has not stopped")
		high.stop <- nil
		moved := high.begins(ctx)
		Expect(moved).To(And(HaveField("ID", 0), HaveField("Count", 1)))
		Expect(moved.Epoch).To(BeNumerically(">", ids[0].Epoch), "a later holder has a higher token")
		high.end()
		high.stop <- nil
		Eventually(high.ended).WithContext(ctx).Should(Receive(BeNil()))
	})
})

var _ = Describe("a native sidecar", func() {
	It("may release only when its pod is being deleted and every main container has terminated", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		spec := suite.PodSpec(suite.Container("main", "/bin/sleep", "1000"))
		spec.InitContainers = []corev1.Container{suite.Sidecar("idalloc", "/bin/sleep", "1000")}
		spec.NodeName = "no-such-node" // nobody runs it: the spec says what its containers do
		Expect(w.Create(ctx, suite.Pod("side", spec))).To(Succeed())
		ended := func() (bool, error) { return agent.Ended(ctx, w.store, w.Name, "side") }
		status := func(state corev1.ContainerState) {
			pod := w.pod(ctx, "side")
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: state}}
			_, err := env.Client.CoreV1().Pods(w.Name).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(ended()).To(BeFalse(), "the pod is not being deleted")
		status(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
		Expect(ended()).To(BeFalse(), "the pod is not being deleted: a probe may have failed")
		status(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, "side", metav1.DeleteOptions{})).To(Succeed())
		Expect(ended()).To(BeFalse(), "a main container runs")
		status(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
		Expect(ended()).To(BeTrue())
	})
})
