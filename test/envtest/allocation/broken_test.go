package allocation

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// revise begins a revision with another container.
func (w *workload) revise(ctx context.Context, c *corev1.Container) {
	GinkgoHelper()
	patch := []map[string]any{{"op": "replace", "path": "/spec/template/spec/containers/0", "value": c}}
	w.patchOwner(ctx, "kubectl-edit", types.JSONPatchType, mustJSON(patch))
}

var _ = Describe("a rollout of a revision with a pod that never starts", func() {
	It("goes as far as it would without idalloc", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		spec := w.wrapSpec(works)
		d := suite.Deployment("worker", 3, spec)
		rolling("1", "1")(&d.Spec)
		Expect(w.Create(ctx, d)).To(Succeed())
		w.running(ctx, 3)

		By("keeping one of the new pods from its program")
		once := "mkdir " + filepath.Join(w.scratch(), "stuck") + ` 2>/dev/null && exec /bin/sleep 1000; exec "$0" "$@"`
		stuck := spec.Containers[0].DeepCopy()
		stuck.Command = append([]string{"/bin/sh", "-c", once}, stuck.Command...)
		w.revise(ctx, stuck)
		Eventually(func(g Gomega) {
			d, err := env.Client.AppsV1().Deployments(w.Name).Get(ctx, "worker", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			s := d.Status
			g.Expect([]int32{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas}).To(Equal([]int32{3, 3, 2}), "replicas, updated, ready")
		}).WithContext(ctx).Should(Succeed())
	})
})

var _ = Describe("a rollout of a revision whose program exits at once", func() {
	It("leaves every id to the old pods, but for short tries", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		d := suite.Deployment("worker", 3, w.wrapSpec(works))
		rolling("25%", "25%")(&d.Spec)
		Expect(w.Create(ctx, d)).To(Succeed())
		before := map[string]bool{}
		for _, s := range w.running(ctx, 3) {
			before[s.Pod] = true
		}
		broken := w.wrapSpec(says + `; exit 1`).Containers[0].DeepCopy()
		broken.ReadinessProbe.HTTPGet.Port = intstr.FromInt32(1) // one that is Ready for a moment costs an old pod its place
		w.revise(ctx, broken)
		tried := ""
		Eventually(func() string {
			for _, s := range w.starts() {
				if !before[s.Pod] {
					tried = s.Pod
				}
			}
			return tried
		}).WithContext(ctx).ShouldNot(BeEmpty())
		Eventually(func(g Gomega) {
			slots, latest := w.assignment(ctx), w.started()
			g.Expect(slots).To(HaveLen(3))
			for id, pod := range slots {
				g.Expect(before).To(HaveKey(pod))
				g.Expect(latest[pod].ID).To(Equal(id))
				g.Expect(lives(latest[pod].PID)).To(BeTrue())
			}
			pod, err := env.Client.CoreV1().Pods(w.Name).Get(ctx, tried, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			receipt, err := assignment.ReceiptOf(pod.Annotations, string(pod.UID), w.ref.String(), time.Now())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(receipt.Failures()).To(BeNumerically(">", 0))
		}).WithContext(ctx).Should(Succeed())
		w.undo(ctx)
		w.rolled(ctx, 3)
	})
})
