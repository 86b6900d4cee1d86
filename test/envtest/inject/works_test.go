package inject

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// podsOf waits until a workload of the namespace has n pods.
func podsOf(ctx context.Context, namespace string, n int) []corev1.Pod {
	GinkgoHelper()
	var found []corev1.Pod
	Eventually(func(g Gomega) {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=worker"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(HaveLen(n))
		found = list.Items
	}).WithContext(ctx).Should(Succeed())
	return found
}

var _ = Describe("the pods of a workload with the label", func() {
	DescribeTable("have the sidecar, and the workload is as its user wrote it", func(ctx SpecContext, kind string) {
		namespace := newNamespace(ctx)
		template := *templateOf(plain)
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "worker"}}
		meta := metav1.ObjectMeta{Name: "worker"}
		options := metav1.CreateOptions{}
		var (
			err    error
			stored corev1.PodTemplateSpec
		)
		switch kind {
		case "Deployment":
			var d *appsv1.Deployment
			d, err = client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}, options)
			stored = d.Spec.Template
		case "StatefulSet":
			var s *appsv1.StatefulSet
			s, err = client.AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}}, options)
			stored = s.Spec.Template
		case "ReplicaSet":
			var r *appsv1.ReplicaSet
			r, err = client.AppsV1().ReplicaSets(namespace).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}}, options)
			stored = r.Spec.Template
		case "Job":
			template.Spec.RestartPolicy = corev1.RestartPolicyNever
			var j *batchv1.Job
			j, err = client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template}}, options)
			stored = j.Spec.Template
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.Spec.InitContainers).To(BeEmpty())
		pod := podsOf(ctx, namespace, 1)[0]
		Expect(names(pod.Spec.InitContainers)).To(Equal([]string{sidecarName}))
		Expect(tokens(&pod)).To(Equal([]string{sidecarName}))
	},
		Entry("a Deployment", "Deployment", SpecTimeout(patience)),
		Entry("a StatefulSet", "StatefulSet", SpecTimeout(patience)),
		Entry("a ReplicaSet", "ReplicaSet", SpecTimeout(patience)),
		Entry("a Job", "Job", SpecTimeout(patience)),
	)

	It("have tokens with which they can write what idalloc writes, and nothing else", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		deployment := &appsv1.Deployment{}
		Expect(yaml.Unmarshal([]byte(plain), deployment)).To(Succeed())
		deployment.Spec.Replicas = new(int32(2))
		_, err := client.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		pods := podsOf(ctx, namespace, 2)
		config, err := plane.PodConfig(ctx, &pods[0])
		Expect(err).NotTo(HaveOccurred())
		in, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		patch := func(pod, text string) error {
			_, err := in.CoreV1().Pods(namespace).Patch(ctx, pod, types.MergePatchType, []byte(text), metav1.PatchOptions{FieldManager: assignment.FieldManager})
			return err
		}
		lock := func(pod corev1.Pod) string {
			r := receipt.Receipt{UID: string(pod.UID), Owner: "Deployment/worker", State: receipt.Waits, Write: "w"}
			return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, receipt.Key, r.Encode())
		}
		const byPolicy = "ValidatingAdmissionPolicy 'idalloc' "
		// The API server learns of the Role a moment after it was written.
		Eventually(func() error { return patch(pods[1].Name, lock(pods[1])) }).WithContext(ctx).Should(MatchError(ContainSubstring(byPolicy)))
		Expect(patch(pods[0].Name, lock(pods[0]))).To(Succeed())
		Expect(patch(pods[0].Name, `{"metadata":{"labels":{"idalloc.dev/inject":null}}}`)).To(MatchError(ContainSubstring(byPolicy)))
		Expect(patch(pods[0].Name, `{"metadata":{"annotations":{"idalloc.dev/injected":null}}}`)).To(MatchError(ContainSubstring(byPolicy)))
		_, err = in.AppsV1().Deployments(namespace).Patch(ctx, "worker", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"{}"}}}`, assignment.Key),
			metav1.PatchOptions{FieldManager: assignment.FieldManager})
		Expect(err).NotTo(HaveOccurred())
	})
})
