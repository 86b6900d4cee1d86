package allocation

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

var _ = Describe("damage by others", func() {
	It("a wipe after another pod's receipt for a held slot arrived late, with a newer epoch", func(ctx SpecContext) {
		v := holding(ctx, 1)
		Expect(v.Scale(ctx, store.Deployment, "worker", 2)).To(Succeed())
		pods := v.somePods(ctx, 2)
		late := pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return v.instances[p.Name] == nil })]
		receipt := assignment.Receipt{UID: string(late.UID), Owner: v.ref.String(), ID: 0, Epoch: v.owner(ctx).Record.State.Epoch + 60_000}
		v.patchPod(ctx, late.Name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q},"labels":{%q:"0"}}}`,
			assignment.ReceiptKey, receipt.Encode(), assignment.InstanceIDLabel))
		v.wipe(ctx)
		Eventually(func(g Gomega) {
			owner := v.owner(ctx)
			g.Expect(owner.Clean()).To(BeTrue())
			g.Expect(owner.Record.State.Slots).NotTo(HaveKeyWithValue(0, late.Name), "the slot's holder acts under it")
		}).WithContext(ctx).Should(Succeed())
		v.undisturbed(v.at, v.holders)
		By("letting the late one run: it withdraws, and the holder is written in again")
		v.newcomers(ctx, 2)
		v.unharmed(ctx)
		Expect(v.holders[late.Name].ID).To(Equal(1))
	})

	It("all receipts removed at once", func(ctx SpecContext) {
		v := holding(ctx, 5)
		var wg sync.WaitGroup
		for name := range v.holders {
			wg.Go(func() {
				defer GinkgoRecover()
				v.patchPod(ctx, name, `{"metadata":{"annotations":{"idalloc.dev/receipt":null},"labels":{"idalloc.dev/instance-id":null}}}`)
			})
		}
		wg.Wait()
		v.receipts(ctx, v.holders)
		for name, id := range v.assigned(ctx, names(v.holders)...) {
			Expect(id.ID).To(Equal(v.holders[name].ID))
			Expect(id.Epoch).To(BeNumerically(">=", v.holders[name].Epoch))
		}
		v.restored(ctx, v.holders)
	})

	It("a receipt that was set to another pod's slot", func(ctx SpecContext) {
		v := holding(ctx, 3)
		thief, victim := v.assignment(ctx)[0], v.assignment(ctx)[1]
		forged := assignment.Receipt{
			UID: string(v.pod(ctx, thief).UID), Owner: "Deployment/worker", ID: 1, Epoch: time.Now().Add(time.Minute).UnixMilli(),
		}
		v.patchPod(ctx, thief, fmt.Sprintf(`{"metadata":{"annotations":{"idalloc.dev/receipt":%q},"labels":{"idalloc.dev/instance-id":"1"}}}`, forged.Encode()))
		v.receipts(ctx, v.holders)
		v.restored(ctx, v.holders)
		for name, id := range v.assigned(ctx, names(v.holders)...) {
			Expect(id.ID).To(Equal(v.holders[name].ID))
		}
		delete(v.holders, thief) // it had to take its slot again
		v.undisturbed(v.at, map[string]identity.Identity{victim: v.holders[victim]})
	})

	DescribeTable("a copied pod", func(ctx SpecContext, change func(*corev1.Pod)) {
		v := holding(ctx, 3)
		original := v.assignment(ctx)[1]
		pod := v.pod(ctx, original)
		twin := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: original + "-debug", Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences},
			Spec:       *suite.PodSpec(suite.Container("main", "/bin/sleep", "1000")),
		}
		// So that it stays when the ReplicaSet ends one pod too many. That is the copy, which no node may run.
		twin.Finalizers = []string{"test.idalloc.dev/stays"}
		twin.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "test.idalloc.dev/never"}}
		change(twin)
		Expect(v.Create(ctx, twin)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { v.patchPod(ctx, twin.Name, `{"metadata":{"finalizers":null}}`) })
		copied, err := idcontext.Start(ctx, v.options(ctx, twin.Name))
		if err == nil {
			DeferCleanup(copied.Close)
			v.follow(copied, twin.UID)
			Eventually(func() *metav1.Time { return v.pod(ctx, twin.Name).DeletionTimestamp }).WithContext(ctx).ShouldNot(BeNil(), "the ReplicaSet has a pod too many")
		}
		By("planning with the copy there")
		v.wipe(ctx)
		v.unharmed(ctx)
		By("letting the original go: its slot is free although the copy lives")
		delete(v.holders, original)
		Expect(v.instances[original].Close(ctx)).To(Succeed())
		v.deletePod(ctx, original)
		v.newcomers(ctx, 3)
		v.unharmed(ctx)
		if copied != nil {
			Expect(copied.Current().Assigned()).To(BeFalse())
		}
	},
		Entry("with its labels and annotations, without ownerReferences", func(p *corev1.Pod) {
			p.OwnerReferences = nil
			delete(p.Labels, "app")
			delete(p.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		}),
		Entry("with everything", func(*corev1.Pod) {}),
	)

	DescribeTable("a wipe in the middle of a claim",
		func(ctx SpecContext, after, before func(pod string) func(*http.Request) bool) {
			v := holding(ctx, 3)
			Expect(v.Scale(ctx, store.Deployment, "worker", 4)).To(Succeed())
			v.somePods(ctx, 4)
			var epoch atomic.Int64
			v.newcomers(ctx, 4, func(o *idcontext.Options) {
				t := &trap{after: after(o.PodName), before: before(o.PodName)}
				t.do = func() {
					defer GinkgoRecover()
					epoch.Store(v.owner(ctx).Record.State.Epoch)
					v.wipe(ctx)
				}
				t.options(o)
			})
			Expect(epoch.Load()).NotTo(BeZero(), "the trap did not spring")
			v.unharmed(ctx)
			for _, id := range v.holders {
				if id.ID == 3 {
					Expect(id.Epoch).To(BeNumerically(">", epoch.Load()), "it acts on what it read before the wipe")
				}
			}
		},
		Entry("between its look and its lists", reads, lists),
		Entry("between its lists and its write", lists, writesOwner),
		Entry("between its write and its receipt", writesOwner, writesReceipt),
		Entry("between its receipt and its second look", writesReceipt, reads),
	)
})
