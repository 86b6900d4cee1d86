//go:build e2e

package e2e

import (
	"context"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/test/overlap"
)

var _ = Describe("Of twelve pods", Ordered, func() {
	var w *workload

	BeforeAll(func(ctx SpecContext) {
		w = prepare(ctx, linked, 10, keepsWorking, rolling("25%", "0"))
		w.stale = true
		w.apply(ctx)
	}, NodeTimeout(patience))

	AfterEach(func(ctx SpecContext) { w.check(ctx) })

	It("ten keep their ids through an undo and a simultaneous scale-up", Label(mainFlow), func(ctx SpecContext) {
		first := w.held(ctx, 10)
		By("beginning a revision that cannot start, and replacing a pod: the old revision's copy of the assignment is out of date now")
		Expect(w.kubectl(ctx, "set", "image", "deployment", name, name+"=docker.io/idalloc/absent:1")).Error().NotTo(HaveOccurred())
		Eventually(func(g Gomega, ctx context.Context) {
			pods, _ := w.others(ctx, g, first)
			g.Expect(pods).To(ContainElement(Satisfy(imageless)))
		}).WithContext(ctx).Should(Succeed())
		Expect(w.kubectl(ctx, "delete", "pod", first[3])).Error().NotTo(HaveOccurred())
		now := holders{}
		Eventually(func(g Gomega, ctx context.Context) {
			now = w.assignment(ctx, g)
			g.Expect(now).To(HaveLen(10))
			g.Expect(now[3]).NotTo(Equal(first[3]))
			last, err := w.lastSample(now[3])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(last.ID).To(Equal(3))
		}).WithContext(ctx).Should(Succeed())

		By("undoing it, and scaling up")
		since := overlap.Now()
		var scaling sync.WaitGroup
		scaling.Go(func() {
			defer GinkgoRecover()
			w.scale(ctx, "12")
		})
		w.undo(ctx)
		w.restored(ctx, now)
		scaling.Wait()
		expectKept(now, w.held(ctx, 12))
		w.expectUninterrupted(now, since)
	}, SpecTimeout(2*patience))

	It("the highest ids end first when it is scaled to ten and to six", Label(mainFlow), func(ctx SpecContext) {
		h := w.held(ctx, 12)
		since := overlap.Now()
		for _, n := range []int{10, 6} {
			w.scale(ctx, strconv.Itoa(n))
			for id := range h {
				if id >= n {
					delete(h, id)
				}
			}
			Expect(w.held(ctx, n)).To(Equal(h))
		}
		w.expectUninterrupted(h, since)
	}, SpecTimeout(2*patience))
})

// restored waits until the assignment gives these pods their ids, and reports how long that took.
func (w *workload) restored(ctx context.Context, h holders) {
	GinkgoHelper()
	begin := time.Now()
	Eventually(func(g Gomega, ctx context.Context) {
		owner, err := w.owner(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(owner.Record.Problems).To(BeEmpty())
		for id, pod := range h {
			g.Expect(owner.Record.State.Slots).To(HaveKeyWithValue(id, pod))
		}
	}).WithContext(ctx).WithPolling(5 * time.Millisecond).Should(Succeed())
	reportf("time until the assignment was restored", "%s after the command", time.Since(begin).Round(time.Millisecond))
}
