package allocation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition"
)

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
		owned := func(m *partition.Member) func() []int { return func() []int { return numbers(m) } }
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
