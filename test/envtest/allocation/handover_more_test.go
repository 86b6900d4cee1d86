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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// crew are functions that idcontext.Run calls in this process. It fails the spec when two of them run under one id at
// one moment, or when the epoch of an id did not grow from one pod to the next, or fell for one pod.
type crew struct {
	mu       sync.Mutex
	working  map[int]string
	last     map[int]identity.Identity
	violated []string
}

func newCrew() *crew {
	c := &crew{working: map[int]string{}, last: map[int]identity.Identity{}}
	DeferCleanup(func() { Expect(c.violated).To(BeEmpty()) })
	return c
}

func (c *crew) enter(id identity.Identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, busy := c.working[id.ID]; busy {
		c.violated = append(c.violated, fmt.Sprintf("%s began to work under %d while %s does", id.Pod, id.ID, other))
	}
	if was, ok := c.last[id.ID]; ok && (id.Epoch < was.Epoch || (id.Pod != was.Pod && id.Epoch == was.Epoch)) {
		c.violated = append(c.violated, fmt.Sprintf("%s works under %d with epoch %d after %s with %d", id.Pod, id.ID, id.Epoch, was.Pod, was.Epoch))
	}
	c.working[id.ID], c.last[id.ID] = id.Pod, id
}

func (c *crew) leave(id identity.Identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.working, id.ID)
}

// worker is one pod's function. When its context ends it goes on working until it is told to stop.
type worker struct {
	pod    string
	calls  chan identity.Identity
	causes chan error
	stop   chan struct{} // one receive for each call that may return
}

// run starts a worker for a pod.
func (c *crew) run(ctx context.Context, w *workload, pod string, change ...change) *worker {
	GinkgoHelper()
	o := w.options(ctx, pod, change...)
	o.KeepOnCountChange = true
	p := &worker{pod: pod, calls: make(chan identity.Identity, 64), causes: make(chan error, 64), stop: make(chan struct{}, 64)}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := idcontext.Run(running, o, func(ctx context.Context, id identity.Identity) error {
			c.enter(id)
			defer c.leave(id)
			p.calls <- id
			<-ctx.Done()
			p.causes <- context.Cause(ctx)
			select {
			case <-p.stop:
			case <-over:
			}
			return nil
		})
		GinkgoLogr.Info("Run returned", "pod", pod, "error", fmt.Sprint(err))
	}()
	DeferCleanup(func() {
		cancel()
		close(over)
		<-ended
	})
	return p
}

// letReturn lets a call return that waits, or the next one, as many as may be.
func (p *worker) letReturn() {
	select {
	case p.stop <- struct{}{}:
	default:
	}
}

// begins waits for the next call.
func (p *worker) begins(ctx context.Context) identity.Identity {
	GinkgoHelper()
	var id identity.Identity
	Eventually(p.calls).WithContext(ctx).Should(Receive(&id), "%s is not called", p.pod)
	return id
}

// told waits until the function's context ended.
func (p *worker) told(ctx context.Context) error {
	GinkgoHelper()
	var cause error
	Eventually(p.causes).WithContext(ctx).Should(Receive(&cause), "%s is not told to stop", p.pod)
	return cause
}

// quiet checks for a short while that nothing happens.
func quiet(what string, f any) {
	Consistently(f, 700*time.Millisecond, 50*time.Millisecond).Should(BeZero(), what)
}

var _ = Describe("a hand-over", func() {
	var (
		w   *workload
		all *crew
	)
	BeforeEach(func(ctx SpecContext) { w, all = newWorkload(ctx, store.Deployment), newCrew() })

	// old starts a worker for each of n pods, and a revision that never gets Ready. By id.
	old := func(ctx context.Context, n int, s strategy, change ...change) []*worker {
		GinkgoHelper()
		workers := make([]*worker, n)
		for _, pod := range w.sleepers(ctx, n, s) {
			p := all.run(ctx, w, pod.Name, change...)
			workers[p.begins(ctx).ID] = p
		}
		w.copied(ctx)
		w.stall(ctx)
		return workers
	}
	requests := func(ctx context.Context) map[int]string { return w.owner(ctx).Record.State.Handover }

	It("waits for the old function to return, and then stays quiet", func(ctx SpecContext) {
		olds := old(ctx, 2, rolling("1", "0"))
		young := all.run(ctx, w, w.stalled(ctx, 1)[0].Name)
		Expect(olds[1].told(ctx)).To(MatchError(idcontext.ErrRevoked))
		Expect(w.owner(ctx).Record.State.Handover).To(Equal(assignment.Slots{1: young.pod}))
		epoch := w.owner(ctx).Record.State.Epoch
		quiet("the slot stays while the work goes on", func() int { return len(young.calls) })
		Expect(w.assignment(ctx)).To(HaveKeyWithValue(1, olds[1].pod))
		Expect(w.owner(ctx).Record.State.Epoch).To(Equal(epoch), "it is asked once")
		olds[1].stop <- struct{}{}
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
			young[n] = all.run(ctx, w, pod.Name)
		}
		Expect(olds[1].told(ctx)).To(MatchError(idcontext.ErrRevoked))
		_, err := env.Client.AppsV1().Deployments(w.Name).Patch(ctx, "worker", types.MergePatchType, []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		olds[1].stop <- struct{}{}
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
		rec := newRecorder()
		holders := make([]string, 0, 2)
		for _, pod := range w.sleepers(ctx, 2, rolling("1", "0")) {
			rec.start(ctx, w, pod.Name)
			holders = append(holders, pod.Name)
		}
		held := rec.assigned(ctx, holders...)
		at := rec.mark()
		w.stall(ctx)
		young := rec.start(ctx, w, w.stalled(ctx, 1)[0].Name)
		Eventually(func() string { return waitingFor(ctx, young) }).WithContext(ctx).Should(ContainSubstring("maxSurge: 0"))
		quiet("nobody is asked", func() int { return len(requests(ctx)) })
		rec.undisturbed(at, held)
	})

	DescribeTable("is called off when the requester is gone before the work has stopped", func(ctx SpecContext, unheard bool) {
		olds := old(ctx, 2, rolling("1", "0"))
		wire := newLink()
		defer wire.cut(false)
		young := all.run(ctx, w, w.stalled(ctx, 1)[0].Name, wire.options)
		Expect(olds[1].told(ctx)).To(MatchError(idcontext.ErrRevoked))
		epoch := w.owner(ctx).Record.State.Epoch
		By("deleting the requester; nothing runs in the pod that follows it")
		wire.cut(unheard)
		w.deletePod(ctx, young.pod)
		Eventually(func() int { return len(w.stalled(ctx, 1)) }).WithContext(ctx).Should(Equal(1))
		olds[1].stop <- struct{}{}
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
		young := all.run(ctx, w, w.stalled(ctx, 1)[0].Name)
		Expect(olds[1].told(ctx)).To(MatchError(idcontext.ErrRevoked))
		before := w.assignment(ctx)
		w.undo(ctx)
		w.whole(ctx, before)
		olds[1].stop <- struct{}{}
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
		young := all.run(ctx, w, w.stalled(ctx, 1)[0].Name)
		Expect(olds[1].told(ctx)).To(MatchError(idcontext.ErrRevoked))
		armed.Store(true)
		olds[1].stop <- struct{}{}
		By("it is asked again on the restored map, and gives then")
		Eventually(func() int { olds[1].letReturn(); return len(young.calls) }).WithContext(ctx).Should(Equal(1))
		Expect(young.begins(ctx).ID).To(Equal(1))
		armed.Store(false)
		Expect(gaveOnDamage.Load()).To(BeZero(), "it wrote its receipt while the map was not clean")
		Expect(olds[0].causes).To(BeEmpty())
	})

	It("is forgotten by a wipe while the work stops", func(ctx SpecContext) {
		olds := old(ctx, 2, rolling("1", "0"))
		young := all.run(ctx, w, w.stalled(ctx, 1)[0].Name)
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
