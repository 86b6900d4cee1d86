package inject

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
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

// stored has the API server store a ReplicaSet with the pod template of a workload, and returns its pod.
func stored(ctx context.Context, namespace, workload string) corev1.Pod {
	GinkgoHelper()
	template := templateOf(workload)
	_, err := client.AppsV1().ReplicaSets(namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "worker"},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: *template},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return podsOf(ctx, namespace, 1)[0]
}

var _ = Describe("the pods of a workload with the label", func() {
	DescribeTable("have the sidecar, and the workload is as its user wrote it", func(ctx SpecContext, kind string) {
		namespace := newNamespace(ctx)
		written := with("kind: Deployment", "kind: "+kind)
		if kind == "Job" {
			written = with("kind: Deployment", "kind: Job", "apps/v1", "batch/v1", "  selector: {matchLabels: {app: worker}}\n", "", "    spec:\n", "    spec:\n      restartPolicy: Never\n")
		}
		o := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(written), &o.Object)).To(Succeed())
		all, err := dynamic.NewForConfig(plane.Config())
		Expect(err).NotTo(HaveOccurred())
		resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		made, err := all.Resource(resource).Namespace(namespace).Create(ctx, o, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, changed, _ := unstructured.NestedSlice(made.Object, "spec", "template", "spec", "initContainers")
		Expect(changed).To(BeFalse())
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
