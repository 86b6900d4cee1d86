package node_test

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var _ = Describe("workloads under the real controllers", func() {
	It("rolls and scales a Deployment", func(ctx SpecContext) {
		deployments := client.AppsV1().Deployments(namespace)
		_, err := deployments.Create(ctx, deployment(3, podSpec(shell("main", forever))), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(available(ctx)).Should(BeEquivalentTo(3))
		before, err := podNames(ctx)()
		Expect(err).NotTo(HaveOccurred())

		By("rolling to a new template")
		_, err = deployments.Patch(ctx, "web", types.MergePatchType,
			[]byte(`{"spec":{"template":{"metadata":{"annotations":{"roll":"1"}}}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(available(ctx)).Should(BeEquivalentTo(3))
		Eventually(podNames(ctx)).Should(HaveLen(3))
		after, err := podNames(ctx)()
		Expect(err).NotTo(HaveOccurred())
		for _, name := range after {
			Expect(slices.Contains(before, name)).To(BeFalse(), name)
		}

		By("scaling up and down")
		scale(ctx, "6")
		Eventually(available(ctx)).Should(BeEquivalentTo(6))
		scale(ctx, "1")
		Eventually(podNames(ctx)).Should(HaveLen(1))
		scale(ctx, "0")
		Eventually(podNames(ctx)).Should(BeEmpty())
	})

	It("runs a hundred pods at once", func(ctx SpecContext) {
		_, err := client.AppsV1().Deployments(namespace).Create(ctx, deployment(100, podSpec(shell("main", forever))), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(available(ctx)).Should(BeEquivalentTo(100))
		addresses := map[string]bool{}
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		for i := range pods.Items {
			addresses[pods.Items[i].Status.PodIP] = true
		}
		Expect(addresses).To(HaveLen(100))
		scale(ctx, "0")
		Eventually(podNames(ctx)).Should(BeEmpty())
	})

	It("completes a Job and retries its failures", func(ctx SpecContext) {
		two := int32(2)
		jobs := client.BatchV1().Jobs(namespace)
		spec := podSpec(shell("main", "echo $(TEXT)"))
		spec.Containers[0].Env = []corev1.EnvVar{{Name: "TEXT", Value: "done"}}
		spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := jobs.Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "good"},
			Spec: batchv1.JobSpec{Parallelism: &two, Completions: &two, Template: template(spec)}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			job, err := jobs.Get(ctx, "good", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(job.Status.Succeeded).To(BeEquivalentTo(2))
		}).Should(Succeed())
		names, err := podNames(ctx)()
		Expect(err).NotTo(HaveOccurred())
		for _, name := range names {
			Expect(getPod(ctx, name)()).To(Satisfy(bePhase(corev1.PodSucceeded)))
			Expect(lines(name, "main")()).To(Equal([]string{"done"}))
		}
	})

	It("creates a StatefulSet's pods one after the other", func(ctx SpecContext) {
		three := int32(3)
		_, err := client.AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: "db"},
			Spec:       appsv1.StatefulSetSpec{Replicas: &three, Selector: selector(), Template: template(podSpec(shell("main", forever)))},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(getPod(ctx, "db-2")).Should(Satisfy(beReady))
		Expect(podNames(ctx)()).To(Equal([]string{"db-0", "db-1", "db-2"}))

		By("replacing a deleted one under its old name")
		old, err := getPod(ctx, "db-1")()
		Expect(err).NotTo(HaveOccurred())
		Expect(client.CoreV1().Pods(namespace).Delete(ctx, "db-1", metav1.DeleteOptions{})).To(Succeed())
		Eventually(getPod(ctx, "db-1")).Should(Satisfy(func(p *corev1.Pod) bool { return p.UID != old.UID && beReady(p) }))
	})
})
