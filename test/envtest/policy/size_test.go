package policy

import (
	"fmt"
	"math"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// scattered is the set of partitions whose text is longest.
func scattered() placement.Set {
	var odd []int
	for p := 1; p < placement.MaxCount; p += 2 {
		odd = append(odd, p)
	}
	return placement.Of(odd...)
}

var _ = Describe("a marked account, about sizes,", Ordered, ContinueOnFailure, func() {
	statefulSets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	var s *scene
	BeforeAll(func(ctx SpecContext) { s = newScene(ctx) })

	// writes sets an annotation of the StatefulSet, which has no pods.
	writes := func(key, value string) request {
		return merges(statefulSets, "statefulset", string(annotations(map[string]string{key: value})))
	}

	It("may write a map, a row and a target of the largest workloads, and no more", func(ctx SpecContext) {
		row := assignment.Row{Count: placement.MaxCount, Strategy: "sticky", Owners: placement.Owners{0: scattered(), 1: placement.Of()}}
		Expect(writes(assignment.PartitionOwnersKey, row.Encode())(ctx, s.marked)).To(Succeed())
		s.refused(ctx, s.marked, writes(assignment.Key, strings.Repeat("x", 66<<10)), "at most 65536 for 0 pods", "use another account")
		s.refused(ctx, s.marked, writes(assignment.Key, strings.Repeat("\u00e9", 33<<10)), "would take 67606 bytes")
	})

	It("leaves room for the annotations of ReplicaSets, but may repair and shrink what is full", func(ctx SpecContext) {
		admin := newActor(s.ns.Name, env.ControlPlane.Config()).dynamic.Resource(statefulSets).Namespace(s.ns.Name)
		fill := func(key string, bytes int) {
			patch := annotations(map[string]string{key: strings.Repeat("x", bytes)})
			_, err := admin.Patch(ctx, "statefulset", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "another"})
			Expect(err).NotTo(HaveOccurred())
		}
		fill("example.com/large", 250_000)
		Expect(writes(assignment.Key, strings.Repeat("x", 5_000))(ctx, s.marked)).To(Succeed())
		s.refused(ctx, s.marked, writes(assignment.Key, strings.Repeat("x", 10_000)), "must leave 3072 of 262144 free")
		fill(assignment.Key, 11_000)
		Expect(writes(assignment.Key, strings.Repeat("y", 10_000))(ctx, s.marked)).To(Succeed(), "it is no larger than before")
	})

	It("may write the largest receipt, and no larger one", func(ctx SpecContext) {
		r := receipt.Receipt{
			UID: string(s.own.UID), Owner: "Deployment/deployment", State: receipt.Locks, Write: receipt.Draw(), Rank: receipt.MaxRank, HandsOver: true, Strict: true,
			Share: receipt.Share{ID: 0, Of: placement.MaxCount, Partitions: scattered()}, Token: math.MaxInt64,
		}
		for p := range scattered().All() {
			r.Tokens = append(r.Tokens, identity.Share{Set: placement.Of(p), Token: math.MaxInt64})
		}
		Expect(carries(s.own, r.Encode(), "deployment.deployment")(ctx, s.marked)).To(Succeed())
		Expect(creates(s.lease(s.own, annotate(strings.Replace(r.Encode(), `"id":0`, `"id":3`, 1))))(ctx, s.marked)).To(Succeed())
		large := strings.Replace(r.Encode(), `"write":"`, `"write":"`+strings.Repeat("x", 16<<10), 1)
		s.refused(ctx, s.marked, carries(s.own, large, "deployment.deployment"), "the receipt of pods "+s.own.Name+" would take", "at most 65536")
	})

	DescribeTable("may not write a Lease with", func(ctx SpecContext, says string, by ...func(*unstructured.Unstructured)) {
		s.refused(ctx, s.marked, creates(s.lease(s.own, by...)), says)
	},
		Entry("a large receipt", "at most 73728", changes{func(o *unstructured.Unstructured) {
			annotate(strings.Replace(o.GetAnnotations()[receipt.Key], `"write":"`, `"write":"`+strings.Repeat("x", 72<<10), 1))(o)
		}}.all, SpecTimeout(patience)),
		Entry("another large annotation", "at most 73728", changes{func(o *unstructured.Unstructured) {
			a := o.GetAnnotations()
			a["example.com/large"] = strings.Repeat("x", 72<<10)
			o.SetAnnotations(a)
		}}.all, SpecTimeout(patience)),
		Entry("large managedFields", "at most 73728", changes{func(o *unstructured.Unstructured) {
			o.SetManagedFields([]metav1.ManagedFieldsEntry{entry("x", metav1.ManagedFieldsOperationUpdate, "coordination.k8s.io/v1",
				fmt.Sprintf(`{"f:metadata":{"f:annotations":{"f:%s":{}}}}`, strings.Repeat("x", 72<<10)))})
		}}.all, SpecTimeout(patience)),
		Entry("the number of a slot that no map has room for", "do not fit the name", changes{
			named("idalloc-deployment.deployment-16384"), set("16384", "metadata", "labels", receipt.IDLabel), func(o *unstructured.Unstructured) {
				annotate(strings.Replace(o.GetAnnotations()[receipt.Key], `"id":3`, `"id":16384`, 1))(o)
			},
		}.all, SpecTimeout(patience)),
	)
})
