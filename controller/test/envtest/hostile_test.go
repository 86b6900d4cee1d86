package envtest

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// later is a clock that is ahead.
type later struct {
	clock.RealClock

	by time.Duration
}

func (l later) Now() time.Time { return l.RealClock.Now().Add(l.by) }

var _ = Describe("what people do to pods and workloads", func() {
	It("lets a pod that was relabelled run on under its id, and says that another one waits for it", func(ctx SpecContext) {
		ns := running(ctx, 3)
		aside := pods(ctx, ns)[0]
		patchPod(ctx, &aside, `{"metadata":{"labels":{"app":"aside"}}}`)
		hears(ctx, ns, "SlotLockedByForeignPod").Should(HaveLen(1))
		patch(ctx, ns, fmt.Sprintf(versioned, "2", "null"))
		Eventually(func(ctx context.Context) (n int) {
			for _, pod := range pods(ctx, ns) {
				if pod.Annotations["version"] == "2" && pod.Annotations[receipt.IDKey] != "" {
					n++
				}
			}
			return n
		}).WithContext(ctx).Should(Equal(2))
		still, err := client.CoreV1().Pods(ns).Get(ctx, aside.Name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(still.DeletionTimestamp).To(BeNil())
		Expect(still.Annotations[receipt.IDKey]).To(Equal(aside.Annotations[receipt.IDKey]))
		Expect(client.CoreV1().Pods(ns).Delete(ctx, aside.Name, metav1.DeleteOptions{})).To(Succeed())
		rolled(ctx, ns, "2", 3)
	})

	It("says why the API server does not let a pod go, whatever the reason", func(ctx SpecContext) {
		ns := running(ctx, 2)
		budget(ctx, ns, "one", 1) // an eviction is refused if two budgets select the pod
		budget(ctx, ns, "two", 1)
		patch(ctx, ns, fmt.Sprintf(versioned, "2", "null"))
		hears(ctx, ns, "RemovalRefused").Should(ContainElement(HaveField("Message", ContainSubstring("more than one PodDisruptionBudget"))))
		Expect(client.PolicyV1().PodDisruptionBudgets(ns).Delete(ctx, "two", metav1.DeleteOptions{})).To(Succeed())
		rolled(ctx, ns, "2", 2)
	})

	It("says that a rolling update waits for a pod that has been unavailable for a minute", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		controlAt(ns, later{by: 2 * time.Minute})
		kubelet(ns)
		create(ctx, ns, deployment(3))
		rolled(ctx, ns, "", 3)
		patch(ctx, ns, `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":3,"maxUnavailable":0}}}}`)
		patch(ctx, ns, fmt.Sprintf(versioned, "2", `"yes"`))
		hears(ctx, ns, "RolloutWaits").Should(ContainElement(HaveField("Message", ContainSubstring("is not available"))))
	})

	It("proposes no id that a pod without a controller locks, although the map does not name it", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Labels: map[string]string{"app": "foreign"}}, Spec: template().Spec}
		foreign.Spec.SchedulingGates = nil
		foreign, err := client.CoreV1().Pods(ns).Create(ctx, foreign, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		lock(ctx, foreign, 0)
		create(ctx, ns, deployment(2))
		Eventually(func(ctx context.Context) []corev1.Pod { return pods(ctx, ns) }).WithContext(ctx).Should(HaveLen(2))
		control(ns)
		Eventually(func(ctx context.Context) string {
			d, err := client.AppsV1().Deployments(ns).Get(ctx, worker, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return d.Annotations["idalloc.dev/assignment"]
		}).WithContext(ctx).Should(ContainSubstring(`"0":"foreign"`))
		Eventually(func(ctx context.Context) []int { return begun(ctx, ns, 2) }).WithContext(ctx).Should(Equal([]int{1}))
		Expect(client.CoreV1().Pods(ns).Delete(ctx, foreign.Name, metav1.DeleteOptions{})).To(Succeed())
		haveIDs(ctx, ns, 2)
	})
})

func patchPod(ctx context.Context, pod *corev1.Pod, text string) {
	GinkgoHelper()
	_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}
