package allocation

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

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
	It("divide what Run works on and what Start owns, by the name that the user writes", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		names := podNames(w.idle(ctx, 2))
		own := map[string]placement.Strategy{"lowest": allTo(slices.Min[[]int]), "highest": allTo(slices.Max[[]int])}
		options := func(pod string) partition.Options {
			return partition.Options{
				Options: w.options(ctx, pod), Strategies: own, Stop: func(context.Context, partition.Set) error { return nil },
			}
		}
		w.divide(ctx, 4, assignment.PartitionStrategyKey, "lowest")
		runs := w.worksBy(ctx, names[0], options(names[0]))
		member, err := partition.Start(ctx, options(names[1]))
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
			Expect(w.owner(ctx).Record.State.Partitions.Strategy).To(Equal(name))
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
