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
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// call is one call of Run's function.
type call struct {
	ctx    context.Context //nolint:containedctx // it is what the spec looks at
	id     idcontext.Identity
	finish chan error
}

// running is a Run in the test process whose calls the spec ends one by one.
type running struct {
	calls chan call
	done  chan error
	stop  context.CancelFunc
}

func (w *workload) run(ctx context.Context, pod string, keep bool) *running {
	GinkgoHelper()
	o := w.options(ctx, pod, func(o *idcontext.Options) { o.KeepOnCountChange = keep })
	rctx, stop := context.WithCancel(ctx)
	r := &running{calls: make(chan call), done: make(chan error, 1), stop: stop}
	go func() {
		r.done <- idcontext.Run(rctx, o, func(ctx context.Context, id idcontext.Identity) error {
			c := call{ctx: ctx, id: id, finish: make(chan error)}
			r.calls <- c
			return <-c.finish
		})
	}()
	DeferCleanup(stop)
	return r
}

func (r *running) next(ctx context.Context) call {
	GinkgoHelper()
	var c call
	Eventually(r.calls).WithContext(ctx).Should(Receive(&c))
	return c
}

var _ = Describe("Run", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	It("keeps the slot until the function has returned, and then gives it back", func(ctx SpecContext) {
		pod := w.idle(ctx, 1)[0].Name
		r := w.run(ctx, pod, false)
		c := r.next(ctx)
		Expect(c.id).To(And(HaveField("ID", 0), HaveField("Count", 1)))
		r.stop()
		Eventually(c.ctx.Done()).WithContext(ctx).Should(BeClosed())
		Consistently(r.done, 300*time.Millisecond).ShouldNot(Receive())
		Expect(w.assignment(ctx)).To(Equal(assignment.Slots{0: pod}), "the work has not stopped")
		c.finish <- c.ctx.Err()
		Eventually(r.done).WithContext(ctx).Should(Receive(BeNil()))
		Expect(w.assignment(ctx)).To(BeEmpty())
	})

	It("returns the function's error, and nil when it is done", func(ctx SpecContext) {
		pod := w.idle(ctx, 1)[0].Name
		broken := errors.New("broken")
		r := w.run(ctx, pod, false)
		r.next(ctx).finish <- broken
		Eventually(r.done).WithContext(ctx).Should(Receive(MatchError(broken)))
		r = w.run(ctx, pod, false)
		r.next(ctx).finish <- nil
		Eventually(r.done).WithContext(ctx).Should(Receive(BeNil()))
	})

	It("calls again with the new count, and keeps the id meanwhile", func(ctx SpecContext) {
		pod := w.idle(ctx, 1)[0].Name
		r := w.run(ctx, pod, false)
		first := r.next(ctx)
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		Eventually(first.ctx.Done()).WithContext(ctx).Should(BeClosed())
		Expect(context.Cause(first.ctx)).To(MatchError(idcontext.ErrCountChanged))
		first.finish <- nil
		second := r.next(ctx)
		Expect(second.id).To(And(HaveField("ID", 0), HaveField("Count", 3), HaveField("Epoch", first.id.Epoch)))
		r.stop()
		second.finish <- nil
		Eventually(r.done).WithContext(ctx).Should(Receive(BeNil()))
	})

	It("lets the function run on over a new count, if told to", func(ctx SpecContext) {
		pod := w.idle(ctx, 1)[0].Name
		r := w.run(ctx, pod, true)
		c := r.next(ctx)
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		Consistently(c.ctx.Done(), 500*time.Millisecond).ShouldNot(BeClosed())
		r.stop()
		c.finish <- nil
		Eventually(r.done).WithContext(ctx).Should(Receive(BeNil()))
	})

	It("moves from a slot that is above the count only after the function has returned", func(ctx SpecContext) {
		pods := w.idle(ctx, 2)
		runs := map[string]*running{}
		calls := map[int]call{}
		for _, pod := range pods {
			runs[pod.Name] = w.run(ctx, pod.Name, true)
			c := runs[pod.Name].next(ctx)
			calls[c.id.ID] = c
		}
		low, high := calls[0], calls[1]
		By("ending the pod with the low id and scaling to one, so that the other has to move")
		runs[low.id.Pod].stop() // before its pod goes
		low.finish <- nil
		Eventually(runs[low.id.Pod].done).WithContext(ctx).Should(Receive(BeNil()))
		w.rank(ctx, map[string]int{low.id.Pod: 0, high.id.Pod: 1})
		Expect(w.Scale(ctx, store.Deployment, "worker", 1)).To(Succeed())
		Eventually(high.ctx.Done()).WithContext(ctx).Should(BeClosed())
		Expect(context.Cause(high.ctx)).To(MatchError(idcontext.ErrRevoked))
		Consistently(func() string { return w.assignment(ctx)[1] }, 300*time.Millisecond).Should(Equal(high.id.Pod), "the work under 1 has not stopped")
		high.finish <- nil
		moved := runs[high.id.Pod].next(ctx)
		Expect(moved.id).To(And(HaveField("ID", 0), HaveField("Count", 1)))
		Expect(moved.id.Epoch).To(BeNumerically(">", low.id.Epoch), "a later holder has a higher token")
		runs[high.id.Pod].stop()
		moved.finish <- nil
		Eventually(runs[high.id.Pod].done).WithContext(ctx).Should(Receive(BeNil()))
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
