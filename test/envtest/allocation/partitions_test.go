package allocation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition"
	"github.com/idalloc/idalloc/test/overlap"
)

// parts is one pod's function for partitions, which partition.Run calls in this process.
type parts struct {
	w     *workload
	pod   string
	end   context.CancelFunc // of Run's context
	ended chan error         // what Run returned

	mu sync.Mutex
	// on are the calls that run, by partition; begun counts the calls of each.
	on    map[int]partition.Partition
	begun map[int]int
	// held keeps calls from returning until it is closed.
	held   chan struct{}
	causes map[int]error
	fail   map[int]error
}

// works runs partition.Run for a pod.
func (w *workload) works(ctx context.Context, pod string, change ...change) *parts {
	GinkgoHelper()
	p := &parts{
		w: w, pod: pod, ended: make(chan error, 1), on: map[int]partition.Partition{}, begun: map[int]int{}, causes: map[int]error{},
		fail: map[int]error{},
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.end = cancel
	o := partition.Options{Options: w.options(ctx, pod, change...)}
	go func() {
		defer close(p.ended)
		p.ended <- partition.Run(running, o, p.do)
	}()
	DeferCleanup(func() {
		cancel()
		p.release()
		for range p.ended { // until it is closed
		}
	})
	return p
}

// do works on one partition. It logs so in a file of this partition and pod, for the overlap check at the end of the spec.
func (p *parts) do(ctx context.Context, part partition.Partition) error {
	defer GinkgoRecover()
	log := p.w.probeLog(p.pod + "#" + strconv.Itoa(part.Number))
	p.begin(part)
	shows := func() (int, int, int64) { return part.Number, part.Count, part.Token }
	Expect(log.Sample(shows)).To(Succeed())
	fail := p.failure(part.Number)
	if fail == nil {
		<-ctx.Done()
		p.hold()
	}
	Expect(errors.Join(log.Sample(shows), log.Sample(overlap.Nothing), log.Close())).To(Succeed())
	p.finish(part.Number, context.Cause(ctx))
	if fail != nil {
		return fail
	}
	return ctx.Err()
}

func (p *parts) begin(part partition.Partition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, twice := p.on[part.Number]
	Expect(twice).To(BeFalse(), "two calls for partition %d of pod %s", part.Number, p.pod)
	p.on[part.Number] = part
	p.begun[part.Number]++
}

func (p *parts) finish(number int, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.on, number)
	p.causes[number] = cause
}

func (p *parts) failure(number int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fail[number]
}

// hold blocks while calls are not to return.
func (p *parts) hold() {
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	if held != nil {
		<-held
	}
}

// holdBack keeps calls whose context has ended from returning.
func (p *parts) holdBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = make(chan struct{})
}

// release lets them return.
func (p *parts) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		close(p.held)
	}
	p.held = nil
}

// now returns the partitions of the calls that run.
func (p *parts) now() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.on))
}

// calls returns how often the work on the partition has begun.
func (p *parts) calls(number int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun[number]
}

func (p *parts) cause(number int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.causes[number]
}

// divide sets the number of partitions, and what else the user says about them.
func (w *workload) divide(ctx context.Context, count int, more ...string) {
	GinkgoHelper()
	keys := map[string]any{assignment.PartitionCountKey: strconv.Itoa(count)}
	for i := 0; i < len(more); i += 2 {
		keys[more[i]] = more[i+1]
	}
	w.annotateAs(ctx, "kubectl", keys)
}

// divided waits until each of count partitions is worked on by exactly one of these pods, and all have as many as they should.
func divided(ctx context.Context, count int, pods ...*parts) {
	GinkgoHelper()
	Eventually(func() error {
		var all []int
		for _, p := range pods {
			now := p.now()
			if len(now) < count/len(pods) || len(now) > (count+len(pods)-1)/len(pods) {
				return fmt.Errorf("pod %s works on %v", p.pod, now)
			}
			all = append(all, now...)
		}
		if slices.Sort(all); !slices.Equal(all, ids(count)) {
			return fmt.Errorf("all work on %v", all)
		}
		return nil
	}).WithContext(ctx).Should(Succeed())
}

var _ = Describe("Partitions", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	// start has n pods work on count partitions.
	start := func(ctx context.Context, n, count int, more ...string) []*parts {
		GinkgoHelper()
		names := podNames(w.idle(ctx, n))
		w.divide(ctx, count, more...)
		pods := make([]*parts, 0, n)
		for _, name := range names {
			pods = append(pods, w.works(ctx, name))
		}
		divided(ctx, count, pods...)
		return pods
	}
	// scale scales up and has the new pods work, too.
	scaleUp := func(ctx context.Context, pods []*parts, n int) []*parts {
		GinkgoHelper()
		Expect(w.Scale(ctx, store.Deployment, "worker", int32(n))).To(Succeed())
		for _, pod := range w.somePods(ctx, n) {
			if !slices.ContainsFunc(pods, func(p *parts) bool { return p.pod == pod.Name }) {
				pods = append(pods, w.works(ctx, pod.Name))
			}
		}
		return pods
	}

	It("divides them, and moves the fewest when pods join, without disturbing the others", func(ctx SpecContext) {
		pods := start(ctx, 2, 12)
		before := map[*parts][]int{}
		for _, p := range pods {
			before[p] = p.now()
		}
		all := scaleUp(ctx, pods, 3)
		divided(ctx, 12, all...)
		for _, p := range pods {
			Expect(p.now()).To(HaveLen(4))
			for _, number := range before[p] {
				if slices.Contains(p.now(), number) {
					Expect(p.calls(number)).To(Equal(1), "partition %d stayed, so its call runs on", number)
				} else {
					Expect(p.cause(number)).To(MatchError(partition.ErrRevoked))
				}
			}
		}
	})

	It("moves a partition only after its call has returned", func(ctx SpecContext) {
		pods := start(ctx, 1, 4)
		pods[0].holdBack()
		all := scaleUp(ctx, pods, 2)
		Eventually(func() int { return w.owner(ctx).Count }).WithContext(ctx).Should(Equal(2))
		Consistently(all[1].now, 3*time.Second).Should(BeEmpty(), "the work on them has not stopped")
		Expect(pods[0].now()).To(HaveLen(4))
		pods[0].release()
		divided(ctx, 4, all...)
	})

	It("gives the partitions of a pod that ends to the next holder of its id", func(ctx SpecContext) {
		pods := start(ctx, 2, 6)
		gone := pods[0].now()
		pods[0].end()
		var returned error
		Eventually(pods[0].ended).WithContext(ctx).Should(Receive(&returned))
		Expect(returned).NotTo(HaveOccurred())
		Expect(pods[0].cause(gone[0])).To(MatchError(partition.ErrClosing))
		w.deletePod(ctx, pods[0].pod)
		all := scaleUp(ctx, pods, 2)
		divided(ctx, 6, all[1:]...)
		Expect(all[2].now()).To(Equal(gone), "nothing moves between ids")
	})

	It("gives them to other ids when nobody takes the id, and back to its next holder", func(ctx SpecContext) {
		pods := start(ctx, 3, 6, assignment.PartitionStrategyKey, "primary", assignment.PartitionFailoverAfterKey, "1s")
		gone := pods[0].now()
		w.allowPods(ctx, 2)
		pods[0].end()
		for range pods[0].ended { // until it is closed
		}
		w.deletePod(ctx, pods[0].pod)
		Eventually(func() []int { return slices.Concat(pods[1].now(), pods[2].now()) }).WithContext(ctx).Should(ConsistOf(ids(6)))
		w.allowAllPods(ctx)
		all := scaleUp(ctx, pods, 3)
		divided(ctx, 6, all[1:]...)
		Expect(all[3].now()).To(Equal(gone), "the primary gets back what is its own")
	})

	It("ends when a call returns an error, and gives the slot back", func(ctx SpecContext) {
		broken := errors.New("broken")
		pod := w.idle(ctx, 1)[0].Name
		w.divide(ctx, 3)
		p := w.works(ctx, pod)
		p.fail[1] = broken
		var returned error
		Eventually(p.ended).WithContext(ctx).Should(Receive(&returned))
		Expect(returned).To(MatchError(broken))
		Expect(p.cause(0)).To(MatchError(partition.ErrClosing))
		Expect(w.assignment(ctx)).To(BeEmpty())
	})

	It("gives a loop of its own what it owns, and waits until it has stopped", func(ctx SpecContext) {
		names := podNames(w.idle(ctx, 2))
		w.divide(ctx, 4)
		stops, stop := make(chan partition.Set, 8), make(chan struct{})
		member := func(pod string) *partition.Member {
			o := partition.Options{Options: w.options(ctx, pod), Stop: func(ctx context.Context, set partition.Set) error {
				stops <- set
				select {
				case <-stop:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}}
			m, err := partition.Start(ctx, o)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(m.Close)
			return m
		}
		owned := func(m *partition.Member) func() []int {
			return func() []int {
				owned := m.Owned()
				all := make([]int, 0, len(owned))
				for _, p := range owned {
					all = append(all, p.Number)
				}
				return all
			}
		}
		first := member(names[0])
		Eventually(owned(first)).WithContext(ctx).Should(Equal(ids(4)))
		second := member(names[1])
		var set partition.Set
		Eventually(stops).WithContext(ctx).Should(Receive(&set))
		Expect(set.Len()).To(Equal(2))
		Expect(owned(first)()).To(HaveLen(2), "the program is not to work on what is to stop")
		Expect(owned(second)()).To(BeEmpty(), "and nobody else works on it")
		close(stop)
		Eventually(func() []int { return append(owned(first)(), owned(second)()...) }).WithContext(ctx).Should(ConsistOf(ids(4)))
		Expect(owned(second)()).To(HaveLen(2))
	})
})
