package envtest

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// rolled waits until all pods are of the template's current version.
func rolled(ctx context.Context, namespace, version string, n int) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, worker, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		g.Expect(d.Status.UpdatedReplicas).To(BeEquivalentTo(n))
		g.Expect(d.Status.AvailableReplicas).To(BeEquivalentTo(n))
		all := pods(ctx, namespace)
		g.Expect(all).To(HaveLen(n))
		for _, pod := range all {
			g.Expect(pod.Annotations["version"]).To(Equal(version))
		}
	}).WithContext(ctx).Should(Succeed())
	haveIDs(ctx, namespace, n)
}

const versioned = `{"spec":{"template":{"metadata":{"annotations":{"version":"%s","broken":%s}}}}}`

var _ = Describe("a rolling update with the default strategy", func() {
	for _, n := range []int32{1, 3} {
		It("removes old pods, and finishes", func(ctx SpecContext) {
			ns := running(ctx, n)
			patch(ctx, ns, fmt.Sprintf(versioned, "2", "null"))
			rolled(ctx, ns, "2", int(n))
			Expect(events(ctx, ns, "PodRemoved")).NotTo(BeEmpty())
		})
	}

	It("stops at a revision that never becomes available, and rolls out the next one", func(ctx SpecContext) {
		ns := running(ctx, 3)
		patch(ctx, ns, fmt.Sprintf(versioned, "2", `"yes"`))
		Eventually(func(ctx context.Context) string { return versionOf(ctx, ns, "2") }).WithContext(ctx).Should(Equal("2"))
		Expect(versionOf(ctx, ns, "0") + versionOf(ctx, ns, "1")).To(BeEmpty())
		patch(ctx, ns, fmt.Sprintf(versioned, "3", "null"))
		rolled(ctx, ns, "3", 3)
	})

	It("asks a PodDisruptionBudget, and says what it answers", func(ctx SpecContext) {
		ns := running(ctx, 3)
		budgets := client.PolicyV1().PodDisruptionBudgets(ns)
		budget(ctx, ns, worker, 0)
		Eventually(func(ctx context.Context) int64 {
			b, err := budgets.Get(ctx, worker, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return b.Status.ObservedGeneration
		}).WithContext(ctx).Should(BeNumerically(">", 0))
		patch(ctx, ns, fmt.Sprintf(versioned, "2", "null"))
		hears(ctx, ns, "RemovalRefused").ShouldNot(BeEmpty())
		Expect(events(ctx, ns, "PodRemoved")).To(BeEmpty())
		Expect(budgets.Delete(ctx, worker, metav1.DeleteOptions{})).To(Succeed())
		rolled(ctx, ns, "2", 3)
	})
})

// budget makes a PodDisruptionBudget of the workload's pods.
func budget(ctx context.Context, namespace, name string, unavailable int32) {
	GinkgoHelper()
	_, err := client.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: deployment(0).Spec.Selector, MaxUnavailable: new(intstr.FromInt32(unavailable))},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// versionOf returns the version of the pod that runs under an id.
func versionOf(ctx context.Context, namespace, id string) string {
	GinkgoHelper()
	for _, pod := range pods(ctx, namespace) {
		if pod.Annotations["idalloc.dev/id"] == id {
			return pod.Annotations["version"]
		}
	}
	return "none"
}
