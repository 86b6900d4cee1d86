package allocation

import (
	"context"
	"slices"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
	"github.com/idalloc/idalloc/test/overlap"
)

// fenceAfter is long enough that a machine that is busy does not fence anybody.
const fenceAfter = 10 * time.Second

func strict(o *idalloc.Options) { o.FenceAfter = fenceAfter }

// forceDelete deletes a pod's object without waiting for anything.
func (w *workload) forceDelete(ctx context.Context, name string) {
	GinkgoHelper()
	now := int64(0)
	Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
}

// others waits until n pods live that are none of these.
func (w *workload) others(ctx context.Context, known []string, n int) []string {
	GinkgoHelper()
	var others []string
	Eventually(func(g Gomega) {
		others = nil
		pods, err := w.Pods(ctx, "worker")
		g.Expect(err).NotTo(HaveOccurred())
		for _, p := range pods {
			if p.DeletionTimestamp == nil && !slices.Contains(known, p.Name) {
				others = append(others, p.Name)
			}
		}
		g.Expect(others).To(HaveLen(n))
	}).WithContext(ctx).Should(Succeed())
	return others
}

// lose begins to delete a pod whose node does not answer any more: it stays when its grace period is over.
func (w *workload) lose(ctx context.Context, name string) {
	GinkgoHelper()
	w.patchPod(ctx, name, `{"metadata":{"finalizers":["test.idalloc.dev/stays"]}}`)
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
		w.patchPod(ctx, name, `{"metadata":{"finalizers":null}}`)
	})
	second := int64(1)
	Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &second})).To(Succeed())
}

// lease returns the Lease of a slot.
func (w *workload) lease(ctx context.Context, id int) *coordinationv1.Lease {
	GinkgoHelper()
	lease, err := env.Client.CoordinationV1().Leases(w.Name).Get(ctx, store.LeaseName(w.ref.String(), id), metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return lease
}

var _ = Describe("strict mode", func() {
	var (
		w   *workload
		rec *recorder
	)
	BeforeEach(func(ctx SpecContext) {
		w = newWorkload(ctx, store.Deployment, suite.StrictRules()...)
		rec = newRecorder(w)
	})

	state := func(i *idalloc.Instance) func() identity.State {
		return func() identity.State { return i.Current().State }
	}

	It("gives ids at once, and has a Lease for each, which it gives back", func(ctx SpecContext) {
		pods := podNames(w.idle(ctx, 2))
		a, b := rec.start(ctx, pods[0], strict), rec.start(ctx, pods[1], strict)
		held := rec.assigned(ctx, pods...)
		w.restored(ctx, held)
		for name, id := range held {
			lease := w.lease(ctx, id.ID)
			Expect(lease.Spec.HolderIdentity).To(HaveValue(Equal(name + "/" + string(w.pod(ctx, name).UID))))
			Expect(lease.Spec.LeaseDurationSeconds).To(HaveValue(BeEquivalentTo((fenceAfter + assignment.StopGrace).Seconds())))
			Expect(lease.OwnerReferences).To(BeEmpty(), "it outlives the workload, because work under it may")
		}
		list, err := env.Client.CoordinationV1().Leases(w.Name).List(ctx, metav1.ListOptions{LabelSelector: "idalloc.dev/owner=deployment.worker"})
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(HaveLen(2))

		By("giving them back")
		Expect(a.Close(ctx)).To(Succeed())
		Expect(b.Close(ctx)).To(Succeed())
		for _, id := range held {
			Expect(w.lease(ctx, id.ID).Spec.HolderIdentity).To(Or(BeNil(), HaveValue(BeEmpty())))
		}
		w.verified(ctx)
	})

	It("fences by the clock, and gives a slot to the next only when the last has lost it", Label(nightly), func(ctx SpecContext) {
		pods := podNames(w.idle(ctx, 4))
		near, far, function, other := pods[0], pods[1], pods[2], pods[3]
		wire := newLink()
		defer wire.cut(false)
		rec.start(ctx, near, strict)
		b := rec.start(ctx, far, strict, wire.options)
		f := w.work(ctx, function, strict, wire.options)
		child := w.strictProcess(ctx, other)
		held := rec.assigned(ctx, near, far)
		first := f.begins(ctx)
		Eventually(func() map[int]string { return w.assignment(ctx) }).WithContext(ctx).Should(HaveLen(4))
		suspendedID, _ := w.assignment(ctx).Of(other)
		Eventually(func(g Gomega) {
			log := w.samples(other)
			g.Expect(log).NotTo(BeEmpty())
			g.Expect(log[len(log)-1].ID).To(Equal(suspendedID))
		}).WithContext(ctx).Should(Succeed())
		at := rec.mark()

		By("a cut that is mended: fenced meanwhile, then the same id again")
		wire.cut(true)
		Eventually(state(b)).WithContext(ctx).Should(Equal(identity.StateFenced))
		Expect(f.told(ctx)).To(MatchError(idalloc.ErrFenced))
		f.stop <- nil
		Expect(w.assignment(ctx)).To(HaveKeyWithValue(held[far].ID, far), "the slot is kept for it")
		wire.cut(false)
		back, err := b.Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(back.ID).To(Equal(held[far].ID))
		Expect(back.Token).To(BeNumerically(">=", held[far].Token))
		again := f.begins(ctx)
		Expect(again.ID).To(Equal(first.ID))
		Expect(again.Token).To(BeNumerically(">=", first.Token))

		By("one that is cut off, whose pod never ends, and one that is suspended, whose pod is deleted by force")
		Expect(child.Process.Signal(syscall.SIGSTOP)).To(Succeed())
		before := len(w.samples(other))
		wire.cut(true)
		Expect(b.Current().Assigned()).To(BeTrue(), "it is too early for this spec")
		w.lose(ctx, far)
		w.forceDelete(ctx, other)
		fresh := w.others(ctx, pods, 2)
		next := make([]*idalloc.Instance, 0, len(fresh))
		for _, name := range fresh {
			next = append(next, rec.start(ctx, name, strict))
		}
		for _, i := range next {
			Eventually(func() string { return waitingFor(ctx, i) }).WithContext(ctx).Should(ContainSubstring("has the Lease"))
		}
		Eventually(state(b)).WithContext(ctx).Should(Equal(identity.StateFenced))
		Expect(f.told(ctx)).To(MatchError(idalloc.ErrFenced))
		for _, i := range next {
			Expect(i.Current().Assigned()).To(BeFalse(), "a Lease lasts longer than fence-after")
		}
		got := rec.assigned(ctx, fresh...)
		Expect([]int{got[fresh[0]].ID, got[fresh[1]].ID}).To(ConsistOf(held[far].ID, suspendedID))
		Expect(b.Current().State).To(Equal(identity.StateFenced))
		Expect(w.pod(ctx, far).DeletionTimestamp).NotTo(BeNil(), "nobody removed the pod that was lost")
		rec.undisturbed(at, map[string]identity.Identity{near: held[near]})

		By("letting the suspended one go on")
		Expect(child.Process.Signal(syscall.SIGCONT)).To(Succeed())
		Eventually(func() int { return len(w.samples(other)) }).WithContext(ctx).Should(BeNumerically(">", before+20))
		for _, r := range w.samples(other)[before+1:] {
			Expect(r.ID).To(Equal(overlap.None), "it acted after it was continued: %v", r)
		}
		By("letting the other two have the network back")
		f.stop <- nil
		wire.cut(false)
		Expect(f.begins(ctx).ID).To(Equal(first.ID))
		Consistently(func() bool { return b.Current().Assigned() }, 3*time.Second).Should(BeFalse(), "its slot is another pod's")
	})
})
