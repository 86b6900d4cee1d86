package allocation

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/placement"
)

// divide sets the number of partitions, and what else the user says about them.
func (w *workload) divide(ctx context.Context, count int, more ...string) {
	GinkgoHelper()
	keys := map[string]any{assignment.PartitionCountKey: strconv.Itoa(count)}
	for i := 0; i < len(more); i += 2 {
		keys[more[i]] = more[i+1]
	}
	w.annotate(ctx, keys)
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

	It("divides them, and moves the fewest when pods join, without disturbing the others", func(ctx SpecContext) {
		names := podNames(w.idle(ctx, 2))
		w.divide(ctx, 12)
		one, other := w.works(ctx, names[0]), w.works(ctx, names[1])
		pods := []*parts{one, other}
		divided(ctx, 12, pods...)
		before := map[*parts][]int{}
		for _, p := range pods {
			before[p] = p.now()
		}
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		divided(ctx, 12, one, other, w.works(ctx, w.others(ctx, names, 1)[0]))
		for _, p := range pods {
			Expect(p.now()).To(HaveLen(4))
			for _, number := range before[p] {
				if slices.Contains(p.now(), number) {
					Expect(p.calls(number)).To(Equal(1), "partition %d stayed, so its call runs on", number)
				} else {
					Expect(p.cause(number)).To(MatchError(idalloc.ErrRevoked))
				}
			}
		}
	})
})

// allTo is a strategy that gives all partitions to the member that choose picks.
func allTo(choose func([]int) int) placement.Strategy {
	return func(in placement.Input) placement.Owners {
		all := placement.Owners{}
		for _, id := range in.Members {
			all[id] = placement.Set{}
		}
		if len(in.Members) > 0 && in.Partitions > 0 {
			all[choose(in.Members)] = placement.Between(0, in.Partitions-1)
		}
		return all
	}
}

var _ = Describe("Strategies of a program's own", func() {
	It("divide what Run works on and what Start owns, by the name that the user writes", Label(nightly), func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		names := podNames(w.idle(ctx, 2))
		own := map[string]placement.Strategy{"lowest": allTo(slices.Min[[]int]), "highest": allTo(slices.Max[[]int])}
		options := func(pod string) idalloc.Options {
			o := w.options(ctx, pod)
			o.Partitions, o.Strategies, o.Stop = true, own, func(context.Context, idalloc.Stopping) error { return nil }
			return o
		}
		w.divide(ctx, 4, assignment.PartitionStrategyKey, "lowest")
		runs := w.worksBy(ctx, names[0], options(names[0]))
		member, err := idalloc.Start(ctx, options(names[1]))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(member.Close)
		Eventually(func() assignment.Slots { return w.assignment(ctx) }).WithContext(ctx).Should(HaveLen(2))
		on := [2]func() []int{runs.now, func() []int { return numbers(member) }}
		if w.assignment(ctx)[0] == names[1] {
			slices.Reverse(on[:])
		}
		inForce := func(name string, zero, one int) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				g.Expect(on[0]()).To(HaveLen(zero))
				g.Expect(on[1]()).To(HaveLen(one))
				g.Expect(slices.Concat(on[0](), on[1]())).To(ConsistOf(ids(4)))
			}).WithContext(ctx).Should(Succeed(), name)
			Expect(w.owner(ctx).Record.State.Row.Strategy).To(Equal(name))
		}
		inForce("lowest", 4, 0)
		w.divide(ctx, 4, assignment.PartitionStrategyKey, "highest")
		inForce("highest", 0, 4)
		w.divide(ctx, 4, assignment.PartitionStrategyKey, "lowest")
		inForce("lowest", 4, 0)
		w.divide(ctx, 4, assignment.PartitionStrategyKey, placement.NameSticky)
		inForce(placement.NameSticky, 2, 2)
	})
})
