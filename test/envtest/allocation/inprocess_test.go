package allocation

import (
	"context"
	"maps"
	"os"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

// restart begins a new revision, as kubectl rollout restart does.
func (w *workload) restart(ctx context.Context) {
	GinkgoHelper()
	w.patchOwner(ctx, types.StrategicMergePatchType, `{"spec":{"template":{"metadata":{"annotations":{"test.idalloc.dev/restarted":"yes"}}}}}`)
}

// allowPods keeps the namespace from getting a pod while it has n or more. It waits until the API server refuses one.
func (w *workload) allowPods(ctx context.Context, n int64) {
	GinkgoHelper()
	limit := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(n, resource.DecimalSI)}
	_, err := env.Client.CoreV1().ResourceQuotas(w.Name).Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: corev1.ResourceQuotaSpec{Hard: limit},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	one := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one-more"}, Spec: *suite.PodSpec(suite.Container("main", "/bin/sleep", "1000"))}
	Eventually(func() error {
		_, err := env.Client.CoreV1().Pods(w.Name).Create(ctx, &one, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}).WithContext(ctx).Should(MatchError(ContainSubstring("exceeded quota")))
}

// log returns what the init container wrote.
func (w *workload) log(pod string) string {
	log, err := os.ReadFile(env.Node.Logs(w.Name, pod, "init"))
	if err != nil {
		return ""
	}
	return string(log)
}

// idle makes a Deployment whose pods do nothing: the test process claims for them.
func (w *workload) idle(ctx context.Context, n int) []corev1.Pod {
	GinkgoHelper()
	d := suite.Deployment("worker", int32(n), suite.PodSpec(suite.Container("main", "/bin/sleep", "1000"))) //nolint:gosec // small
	Expect(w.Create(ctx, d)).To(Succeed())
	return w.somePods(ctx, n)
}

func (w *workload) somePods(ctx context.Context, n int) []corev1.Pod {
	GinkgoHelper()
	var pods []corev1.Pod
	Eventually(func(g Gomega) {
		var err error
		pods, err = w.Pods(ctx, w.ref.Name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods).To(HaveLen(n))
	}).WithContext(ctx).Should(Succeed())
	return pods
}

// forceDelete deletes a pod's object without waiting for anything.
func (w *workload) forceDelete(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})).To(Succeed())
}

// newcomer returns the pod that did not hold an id before, when there are n pods.
func (w *workload) newcomer(ctx context.Context, g Gomega, before map[int]string, n int) string {
	GinkgoHelper()
	pods, err := w.Pods(ctx, w.ref.Name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods).To(HaveLen(n))
	known := slices.Collect(maps.Values(before))
	at := slices.IndexFunc(pods, func(p corev1.Pod) bool { return !slices.Contains(known, p.Name) })
	g.Expect(at).To(BeNumerically(">=", 0), "there is no new pod")
	return pods[at].Name
}
