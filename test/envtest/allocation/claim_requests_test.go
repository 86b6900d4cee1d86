package allocation

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/partition"
)

// asked returns what was counted so far.
func (b *bill) asked() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.requests)
}

// A process that could work on partitions asks for no more than one that could not, where the user says nothing about partitions.
var _ = Describe("what it costs without partitions", func() {
	linked := func(ctx context.Context, w *workload, pod string, b *bill) (current func() identity.Identity) {
		GinkgoHelper()
		return w.instance(ctx, pod, b.options).Current
	}
	divides := func(ctx context.Context, w *workload, pod string, b *bill) (current func() identity.Identity) {
		GinkgoHelper()
		now := &atomic.Pointer[identity.Identity]{}
		now.Store(&identity.Identity{})
		o := partition.Options{Options: w.options(ctx, pod, b.options), Changed: func(id identity.Identity) { now.Store(&id) }}
		w.worksBy(ctx, pod, o)
		return func() identity.Identity { return *now.Load() }
	}
	DescribeTable("to claim a slot, and to take one that a sibling's plan gave, and to hold both", func(ctx SpecContext, start func(context.Context, *workload, string, *bill) func() identity.Identity) {
		w := newWorkload(ctx, store.Deployment)
		names := podNames(w.idle(ctx, 2))
		instances, bills := make([]func() identity.Identity, 0, len(names)), make([]*bill, 0, len(names))
		for _, pod := range names {
			b := &bill{requests: map[string]int{}}
			current := start(ctx, w, pod, b)
			Eventually(func() bool { return current().Assigned() }).WithContext(ctx).Should(BeTrue())
			instances, bills = append(instances, current), append(bills, b)
		}
		for n, want := range []map[string]int{
			{ // it resolves its owner, plans for both (W1), and takes (T1 to T4)
				"GET pods": 1, "GET replicasets": 1, "GET deployments": 4, "LIST pods": 2, "PATCH deployments": 1, "PATCH pods": 1,
				"WATCH deployments": 1, "WATCH pods": 1,
			},
			{ // the map names it already
				"GET pods": 1, "GET replicasets": 1, "GET deployments": 2, "PATCH pods": 1, "WATCH deployments": 1, "WATCH pods": 1,
			},
		} {
			Eventually(func() string { return fmt.Sprint(bills[n].asked()) }).WithContext(ctx).Should(Equal(fmt.Sprint(want)), "pod %d", n)
		}
		before := []map[string]int{bills[0].asked(), bills[1].asked()}
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		for n, current := range instances {
			Eventually(func() int { return current().Count }).WithContext(ctx).Should(Equal(3))
			Expect(bills[n].asked()).To(Equal(before[n]), "a holder hears what it needs by its watches")
		}
	},
		Entry("with pkg/context", linked),
		Entry("with partition.Run", divides),
	)
})
