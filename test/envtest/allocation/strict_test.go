package allocation

import (
	"context"
	"slices"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/gc"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/overlap"
)

// fenceAfter is long enough that a machine that is busy does not fence anybody.
const fenceAfter = 10 * time.Second

func strict(o *idcontext.Options) { o.FenceAfter = fenceAfter }

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

var _ = Describe("strict mode", func() {
	var (
		w   *workload
		rec *recorder
	)
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment); rec = newRecorder(w) })

	state := func(i *idcontext.Instance) func() identity.State {
		return func() identity.State { return i.Current().State }
	}
	quarantine := func(ctx context.Context) string { return w.owner(ctx).Annotations[assignment.QuarantineKey] }

	It("quarantines, fences by the clock, and gives a slot to the next only when the last has lost it", Label(nightly), func(ctx SpecContext) {
		pods := podNames(w.idle(ctx, 4))
		near, far, function, other := pods[0], pods[1], pods[2], pods[3]
		wire := newLink()
		defer wire.cut(false)

		By("the first start: nobody knows who held what before")
		a := rec.start(ctx, near, strict)
		Eventually(func() string { return quarantine(ctx) }).WithContext(ctx).Should(MatchRegexp(`^{"[0-9]+":"0-"}$`))
		Expect(a.Current().Assigned()).To(BeFalse())
		Expect(w.owner(ctx).Annotations).To(HaveKeyWithValue(assignment.FenceAfterKey, fenceAfter.String()))
		Expect(w.assignment(ctx)).To(BeEmpty())
		Eventually(func() string { return waitingFor(ctx, a) }).WithContext(ctx).Should(ContainSubstring("quarantine"))
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
		Expect(f.told(ctx)).To(MatchError(idcontext.ErrFenced))
		f.stop <- nil
		Expect(w.assignment(ctx)).To(HaveKeyWithValue(held[far].ID, far), "the slot is kept for it")
		wire.cut(false)
		back, err := b.Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(back.ID).To(Equal(held[far].ID))
		Expect(back.Epoch).To(BeNumerically(">=", held[far].Epoch))
		again := f.begins(ctx)
		Expect(again.ID).To(Equal(first.ID))
		Expect(again.Epoch).To(BeNumerically(">=", first.Epoch))

		By("one that is cut off and one that is suspended, whose pods are deleted by force at once")
		Expect(child.Process.Signal(syscall.SIGSTOP)).To(Succeed())
		before := len(w.samples(other))
		wire.cut(true)
		Expect(b.Current().Assigned()).To(BeTrue(), "it is too early for this spec")
		w.forceDelete(ctx, far)
		w.forceDelete(ctx, other)
		fresh := w.others(ctx, pods, 2)
		next := make([]*idcontext.Instance, 0, len(fresh))
		for _, name := range fresh {
			next = append(next, rec.start(ctx, name, strict))
		}
		Eventually(func(g Gomega) {
			q := w.owner(ctx).Record.State.Quarantine
			for _, id := range []int{held[far].ID, suspendedID} {
				_, in := q.Since(id)
				g.Expect(in).To(BeTrue(), "slot %d is in quarantine: %v", id, q)
			}
		}).WithContext(ctx).Should(Succeed())
		_, err = gc.Sweep(ctx, w.store, w.ref, wait.Backoff{}, false)
		Expect(err).NotTo(HaveOccurred())
		Eventually(state(b)).WithContext(ctx).Should(Equal(identity.StateFenced))
		Expect(f.told(ctx)).To(MatchError(idcontext.ErrFenced))
		for _, i := range next {
			Expect(i.Current().Assigned()).To(BeFalse(), "the quarantine is longer than fence-after")
		}
		got := rec.assigned(ctx, fresh...)
		Expect([]int{got[fresh[0]].ID, got[fresh[1]].ID}).To(ConsistOf(held[far].ID, suspendedID))
		Expect(b.Current().State).To(Equal(identity.StateFenced))
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
		Eventually(state(b)).WithContext(ctx).Should(Equal(identity.StateLost))
		Expect(f.begins(ctx).ID).To(Equal(first.ID))
	})
})
