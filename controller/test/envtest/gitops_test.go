package envtest

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Flux asks the API server what would change, and corrects that. Argo CD does the same with its server-side diff.
var _ = It("writes nothing that a GitOps tool takes for drift", func(ctx SpecContext) {
	namespace := newNamespace(ctx)
	control(namespace)
	kubelet(namespace)
	apply := func(ctx context.Context, dry ...string) *appsv1.Deployment {
		GinkgoHelper()
		d := deployment(3)
		d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
		text, err := json.Marshal(map[string]any{"apiVersion": d.APIVersion, "kind": d.Kind, "metadata": map[string]any{"name": d.Name}, "spec": d.Spec})
		Expect(err).NotTo(HaveOccurred())
		d, err = client.AppsV1().Deployments(namespace).Patch(ctx, worker, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: "gitops", Force: new(true), DryRun: dry})
		Expect(err).NotTo(HaveOccurred())
		return d
	}
	apply(ctx)
	rolled(ctx, namespace, "", 3)
	Eventually(func(g Gomega, ctx context.Context) {
		now, err := client.AppsV1().Deployments(namespace).Get(ctx, worker, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		would := apply(ctx, metav1.DryRunAll)
		g.Expect(would.Spec).To(Equal(now.Spec))
		g.Expect(would.Labels).To(Equal(now.Labels))
		g.Expect(would.Annotations).To(And(Equal(now.Annotations), HaveKey("idalloc.dev/assignment")))
	}).WithContext(ctx).Should(Succeed())
})
