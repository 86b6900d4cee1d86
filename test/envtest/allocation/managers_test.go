package allocation

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
)

var _ = Describe("an owner that many write to", func() {
	It("keeps its map and gets no Event when the API server forgets who wrote the seal", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		pods := w.idle(ctx, 2)
		instances := make([]*idcontext.Instance, 0, len(pods))
		for _, pod := range pods {
			instances = append(instances, w.instance(ctx, pod.Name))
		}
		ids := map[string]int{}
		for _, i := range instances {
			id, err := i.Wait(ctx)
			Expect(err).NotTo(HaveOccurred())
			ids[id.Pod] = id.ID
		}
		epoch := w.owner(ctx).Record.State.Epoch
		Eventually(func(g Gomega) { // managers are ordered by the second of their last write
			forget(ctx, g, w)
			g.Expect(w.owner(ctx).Record.State.Epoch).To(BeNumerically(">", epoch), "a holder writes the map anew")
		}).WithContext(ctx).Should(Succeed())
		Eventually(func(g Gomega) {
			owner := w.owner(ctx)
			g.Expect(owner.Clean()).To(BeTrue())
			for pod, id := range ids {
				g.Expect(owner.Record.State.Slots).To(HaveKeyWithValue(id, pod))
			}
		}).WithContext(ctx).Should(Succeed())
		for _, i := range instances {
			Expect(i.Current().ID).To(Equal(ids[i.Current().Pod]))
		}
		events, err := env.Client.CoreV1().Events(w.Name).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=worker,involvedObject.kind=Deployment"})
		Expect(err).NotTo(HaveOccurred())
		for i := range events.Items {
			Expect(events.Items[i].Reason).NotTo(HavePrefix("Assignment"), events.Items[i].Message)
		}
	})
})

// forget has more managers write to the owner than the API server remembers.
func forget(ctx context.Context, g Gomega, w *workload) {
	for n := range 14 {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/tool-%d":%q}}}`, n, metav1.Now().String())
		_, err := env.Client.AppsV1().Deployments(w.Name).Patch(ctx, "worker", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fmt.Sprintf("tool-%d", n)})
		g.Expect(err).NotTo(HaveOccurred())
	}
}
