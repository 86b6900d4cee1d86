package allocation

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// quiet checks for a short while that nothing happens.
func quiet(what string, f any) {
	Consistently(f, 700*time.Millisecond, 50*time.Millisecond).Should(BeZero(), what)
}

var _ = Describe("a hand-over", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	// old starts a worker for each of n pods, and a revision that never gets Ready. By id.
	old := func(ctx context.Context, n int, s strategy, change ...change) []*worker {
		GinkgoHelper()
		workers := make([]*worker, n)
		for _, pod := range w.idle(ctx, n, s) {
			p := w.work(ctx, pod.Name, change...)
			workers[p.begins(ctx).ID] = p
		}
		w.copied(ctx)
		w.stall(ctx)
		return workers
	}
	requests := func(ctx context.Context) map[int]string { return w.owner(ctx).Record.State.Handover }

	It("waits for the old function to return, and then stays quiet", func(ctx SpecContext) {
		olds := old(ctx, 2, rolling("1", "0"))
		young := w.work(ctx, w.stalled(ctx, 1)[0].Name)
		Expect(olds[1].told(ctx)).To(MatchError(idcontext.ErrRevoked))
		Expect(w.owner(ctx).Record.State.Handover).To(Equal(assignment.Slots{1: young.pod}))
		epoch := w.owner(ctx).Record.State.Epoch
		quiet("the slot stays while the work goes on", func() int { return len(young.calls) })
		Expect(w.assignment(ctx)).To(HaveKeyWithValue(1, olds[1].pod))
		Expect(w.owner(ctx).Record.State.Epoch).To(Equal(epoch), "it is asked once")
		olds[1].stop <- nil
		id := young.begins(ctx)
		Expect(id.ID).To(Equal(1))
		Expect(id.Epoch).To(BeNumerically(">", epoch))
		By("the new pod never gets Ready: everybody stays as he is, whatever wakes him up")
		Eventually(func() map[int]string { return requests(ctx) }).WithContext(ctx).Should(BeEmpty())
		after := w.owner(ctx).Record.State
		for n := range 5 {
			w.annotate(ctx, map[string]any{"example.com/x": strconv.Itoa(n)})
			for _, p := range []string{olds[0].pod, olds[1].pod, young.pod} {
				w.patchPod(ctx, p, fmt.Sprintf(`{"metadata":{"labels":{"example.com/x":"%d"}}}`, n))
			}
			quiet("nobody writes", func() int64 { return w.owner(ctx).Record.State.Epoch - after.Epoch })
		}
		Expect(olds[0].causes).To(BeEmpty(), "the other holder is not asked")
		Expect(olds[1].calls).To(BeEmpty(), "who gave its slot up takes no other")
	})

	It("stays quiet when the rollout is paused after it", func(ctx SpecContext) {
		olds := old(ctx, 2, rolling("2", "0"))
		young := make([]*worker, 2)
		for n, pod := range w.stalled(ctx, 2) {
			young[n] = w.work(ctx, pod.Name)
		}
		Expect(olds[1].told(ctx)).To(MatchError(idcontext.ErrRevoked))
		w.patchOwner(ctx, "", types.MergePatchType, `{"spec":{"paused":true}}`)
		olds[1].stop <- nil
		Eventually(func() int { return len(young[0].calls) + len(young[1].calls) }).WithContext(ctx).Should(Equal(1))
		Eventually(func() map[int]string { return requests(ctx) }).WithContext(ctx).Should(BeEmpty())
		epoch := w.owner(ctx).Record.State.Epoch
		for n := range 4 {
			w.annotate(ctx, map[string]any{"example.com/x": strconv.Itoa(n)})
			w.patchPod(ctx, olds[1].pod, fmt.Sprintf(`{"metadata":{"labels":{"example.com/x":"%d"}}}`, n))
			quiet("nobody writes", func() int64 { return w.owner(ctx).Record.State.Epoch - epoch })
		}
		Expect(olds[0].causes).To(BeEmpty())
		Expect(olds[1].calls).To(BeEmpty())
	})

	It("does not happen when no old pod can know that its work has stopped, and the waiter says how to get out", func(ctx SpecContext) {
		rec := newRecorder(w)
		holders := make([]string, 0, 2)
		for _, pod := range w.idle(ctx, 2, rolling("1", "0")) {
			rec.start(ctx, pod.Name)
			holders = append(holders, pod.Name)
		}
		held := rec.assigned(ctx, holders...)
		at := rec.mark()
		w.stall(ctx)
		young := rec.start(ctx, w.stalled(ctx, 1)[0].Name)
		Eventually(func() string { return waitingFor(ctx, young) }).WithContext(ctx).Should(ContainSubstring("maxSurge: 0"))
		quiet("nobody is asked", func() int { return len(requests(ctx)) })
		rec.undisturbed(at, held)
	})

	DescribeTable("is called off when the requester is gone before the work has stopped", func(ctx SpecContext, unheard bool) {
		olds := old(ctx, 2, rolling("1", "0"))
		wire := newLink()
		defer wire.cut(false)
		young := w.work(ctx, w.stalled(ctx, 1)[0].Name, wire.options)
		Expect(olds[1].told(ctx)).To(MatchError(idcontext.ErrRevoked))
		epoch := w.owner(ctx).Record.State.Epoch
		By("deleting the requester; nothing runs in the pod that follows it")
		wire.cut(unheard)
		w.deletePod(ctx, young.pod)
		Eventually(func() int { return len(w.stalled(ctx, 1)) }).WithContext(ctx).Should(Equal(1))
		olds[1].stop <- nil
		id := olds[1].begins(ctx)
		Expect(id.ID).To(Equal(1))
		Expect(id.Epoch).To(BeNumerically("<=", epoch), "it gave its slot away for nobody")
		Eventually(func() map[int]string { return requests(ctx) }).WithContext(ctx).Should(BeEmpty(), "the request of a dead pod vanishes")
	},
		Entry("and drops its request", false),
		Entry("and cannot drop its request", true),
	)

	It("is called off by an undo in the middle", func(ctx SpecContext) {
		olds := old(ctx, 2, rolling("1", "0"))
		young := w.work(ctx, w.stalled(ctx, 1)[0].Name)
		Expect(olds[1].told(ctx)).To(MatchError(idcontext.ErrRevoked))
		before := w.assignment(ctx)
		w.undo(ctx)
		w.whole(ctx, before)
		olds[1].stop <- nil
		Expect(olds[1].begins(ctx).ID).To(Equal(1))
		w.whole(ctx, before)
		Expect(young.calls).To(BeEmpty())
		Expect(olds[0].causes).To(BeEmpty())
	})

	It("does not begin on a map that was wiped, and goes on when it is whole again", func(ctx SpecContext) {
		var armed atomic.Bool
		var gaveOnDamage atomic.Int64
		var once sync.Once
		spy := func(o *idcontext.Options) {
			gives := writesReceipt(o.PodName)
			intercept(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				switch {
				case !armed.Load():
				case reads("")(r): // the look between the end of the work and the give
					once.Do(func() {
						defer GinkgoRecover()
						w.wipe(ctx)
					})
				case gives(r):
					if owner, err := w.store.Get(r.Context(), w.ref); err == nil && !owner.Clean() {
						gaveOnDamage.Add(1)
					}
				}
				return next.RoundTrip(r)
			})(o)
		}
		olds := old(ctx, 2, rolling("1", "0"), spy)
		young := w.work(ctx, w.stalled(ctx, 1)[0].Name)
		Expect(olds[1].told(ctx)).To(MatchError(idcontext.ErrRevoked))
		armed.Store(true)
		olds[1].stop <- nil
		By("it is asked again on the restored map, and gives then")
		Eventually(func() int { olds[1].letReturn(); return len(young.calls) }).WithContext(ctx).Should(Equal(1))
		Expect(young.begins(ctx).ID).To(Equal(1))
		armed.Store(false)
		Expect(gaveOnDamage.Load()).To(BeZero(), "it wrote its receipt while the map was not clean")
		Expect(olds[0].causes).To(BeEmpty())
	})

	It("is forgotten by a wipe while the work stops", func(ctx SpecContext) {
		olds := old(ctx, 2, rolling("1", "0"))
		young := w.work(ctx, w.stalled(ctx, 1)[0].Name)
		Expect(olds[1].told(ctx)).To(MatchError(idcontext.ErrRevoked))
		before := w.assignment(ctx)
		for range 3 {
			w.wipe(ctx)
			w.whole(ctx, before)
		}
		Expect(young.calls).To(BeEmpty())
		By("asking again")
		Eventually(func() map[int]string { return requests(ctx) }).WithContext(ctx).Should(Equal(map[int]string{1: young.pod}))
		Eventually(func() int { olds[1].letReturn(); return len(young.calls) }).WithContext(ctx).Should(Equal(1))
		Expect(olds[0].causes).To(BeEmpty())
	})

	It("happens one at a time with maxSurge 100% and maxUnavailable 0", func(ctx SpecContext) {
		w.roll(ctx, 4, rolling("100%", "0"))
		first, err := w.Pods(ctx, "worker")
		Expect(err).NotTo(HaveOccurred())
		older := map[string]bool{}
		for _, p := range first {
			older[p.Name] = true
		}
		looking, stop := context.WithCancel(ctx)
		var watching sync.WaitGroup
		defer watching.Wait()
		defer stop()
		most := 0
		watching.Go(func() {
			defer GinkgoRecover()
			for looking.Err() == nil {
				if n, err := w.underWay(looking, older); err == nil {
					most = max(most, n)
				}
			}
		})
		w.restart(ctx)
		w.rolled(ctx, 4)
		stop()
		watching.Wait()
		Expect(most).To(Equal(1), "hand-overs under way at once")
	})
})

// underWay counts the hand-overs that are under way: requests, and new pods that hold a slot and are not Ready. The
// pods are read last, and who is Ready stays so, so it counts too few rather than too many.
func (w *workload) underWay(ctx context.Context, older map[string]bool) (int, error) {
	owner, err := w.store.Get(ctx, w.ref)
	if err != nil {
		return 0, err
	}
	pods, err := w.Pods(ctx, "worker")
	if err != nil {
		return 0, err
	}
	n := len(owner.Record.State.Handover)
	holders := slices.Collect(maps.Values(owner.Record.State.Slots))
	for _, p := range pods {
		if !older[p.Name] && slices.Contains(holders, p.Name) && p.Status.Phase != corev1.PodFailed && p.DeletionTimestamp == nil && !suite.Ready(&p) {
			n++
		}
	}
	return n, nil
}

// whole waits until the map is clean and says this.
func (w *workload) whole(ctx context.Context, slots assignment.Slots) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		owner := w.owner(ctx)
		g.Expect(owner.Clean()).To(BeTrue(), "the map is clean")
		g.Expect(owner.Record.State.Slots).To(Equal(slots))
	}).WithContext(ctx).Should(Succeed())
}
