package allocation

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

var _ = Describe("when the API server goes away", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	It("holders keep their ids, say that they are stale, and go on when it is back", Label(nightly), Serial, func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 3, w.podSpec()))).To(Succeed())
		before := w.settled(ctx, 3)
		pods := map[int]corev1.Pod{}
		for id, name := range before {
			pods[id] = *w.pod(ctx, name)
		}
		env.ControlPlane.KillAPIServer()
		for id, pod := range pods {
			Eventually(func() (string, error) { return w.staleHeader(ctx, pod) }).WithContext(ctx).Should(Equal("true"))
			Expect(w.identity(ctx, pod)).To(HaveField("ID", id))
		}
		Expect(env.ControlPlane.StartAPIServer(ctx)).To(Succeed())
		Expect(w.settled(ctx, 3)).To(Equal(before))
		Expect(w.Scale(ctx, store.Deployment, "worker", 5)).To(Succeed())
		after := w.settled(ctx, 5)
		for id, name := range before {
			Expect(after).To(HaveKeyWithValue(id, name))
			Expect(restarts(w.pod(ctx, name), "idalloc")).To(BeZero(), "an outage is no reason to restart")
		}
	})
})

// staleHeader asks a pod's watcher whether it has contact.
func (w *workload) staleHeader(ctx context.Context, pod corev1.Pod) (string, error) {
	resp, err := w.get(ctx, pod)
	if err != nil {
		return "", err
	}
	return resp.Header.Get("Idalloc-Stale"), resp.Body.Close()
}
