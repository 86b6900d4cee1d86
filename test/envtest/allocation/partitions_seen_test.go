package allocation

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// divider works on partitions for a pod, in the test process, until the spec ends. Its work stops at once.
func (w *workload) divider(ctx context.Context, pod string) {
	GinkgoHelper()
	a, err := allocator.New(ctx, allocator.Options{
		Store: w.store, Pod: pod, Namespace: w.Name, Log: GinkgoLogr.WithValues("pod", pod),
		Divides: true, HandsOver: true,
	})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(running) }()
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
		stop()
		Eventually(ended).WithContext(ctx).Should(Receive(MatchError(context.Canceled)))
	})
}

// divided returns what get --partitions says.
func (w *workload) divided(ctx context.Context) inspect.PartitionView {
	GinkgoHelper()
	got := w.idalloc(ctx, "", "get", w.ref.String(), "-n", w.Name, "--partitions", "-o", "json")
	Expect(got.Code).To(BeZero(), got.Stderr)
	var v inspect.PartitionView
	Expect(json.Unmarshal([]byte(got.Stdout), &v)).To(Succeed(), got.Stdout)
	return v
}

var _ = Describe("Partitions from outside", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) {
		w = newWorkload(ctx, store.Deployment)
		for _, pod := range w.idle(ctx, 2, rolling("0", "1")) {
			w.divider(ctx, pod.Name)
		}
	})

	It("are shown and checked, and Events tell what becomes of them", Label(nightly), func(ctx SpecContext) {
		Eventually(func() assignment.Slots { return w.assignment(ctx) }).WithContext(ctx).Should(HaveLen(2))
		Expect(w.idalloc(ctx, "", "get", w.ref.String(), "-n", w.Name, "--partitions").Stdout).To(ContainSubstring("has no partitions: annotation idalloc.dev/partition-count"))

		By("asking for partitions")
		w.annotate(ctx, map[string]any{assignment.PartitionCountKey: "4"})
		owned := func(ctx context.Context) (ranges []string) {
			for _, r := range w.divided(ctx).Ranges {
				ranges = append(ranges, strings.Join([]string{r.Partitions, string(r.State), r.Pod}, " "))
			}
			return ranges
		}
		Eventually(owned).WithContext(ctx).Should(HaveEach(ContainSubstring(" owned ")))
		w.verified(ctx)
		v := w.divided(ctx)
		Expect(v).To(And(HaveField("Count", 4), HaveField("Strategy", "sticky")))
		Expect(v.Ranges).To(HaveEach(HaveField("Since", Not(BeNil()))))
		Expect(w.verify(ctx).Stdout).To(HaveSuffix("; they lock 4 of 4 partitions\n"))
		table := w.idalloc(ctx, "", "get", w.ref.String(), "-n", w.Name, "--partitions").Stdout
		Expect(table).To(MatchRegexp(`^PARTITIONS\s+ID\s+POD\s+STATE\s+FOR\n`))
		Expect(table).To(MatchRegexp(`owned\s+>\d+m?s\n`))
		Eventually(w.told).WithContext(ctx).Should(ContainElement(And(
			HaveField("Reason", "PartitionsInForce"), HaveField("Type", corev1.EventTypeNormal),
			HaveField("Message", "4 partitions by strategy sticky are in force; before: no partitions"),
		)))

		By("asking for nonsense")
		w.annotate(ctx, map[string]any{assignment.PartitionCountKey: "many"})
		w.verdict(ctx, 1).found("partitionKeys", -1, "")
		Eventually(w.told).WithContext(ctx).Should(ContainElement(And(
			HaveField("Reason", "PartitionKeysIgnored"), HaveField("Type", corev1.EventTypeWarning), HaveField("Message", ContainSubstring(`not a number: "many"`)),
		)))
		w.annotate(ctx, map[string]any{assignment.PartitionCountKey: "4"})

		By("writing the owners as somebody else")
		w.annotate(ctx, map[string]any{assignment.PartitionOwnersKey: `no row`})
		Eventually(w.told).WithContext(ctx).Should(ContainElement(And(
			HaveField("Reason", "AssignmentDamaged"), HaveField("Type", corev1.EventTypeWarning), HaveField("Message", ContainSubstring(assignment.PartitionOwnersKey)),
		)))
		w.verified(ctx)
		Expect(owned(ctx)).To(HaveEach(ContainSubstring(" owned ")))
	})
})
