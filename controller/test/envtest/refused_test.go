package envtest

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const sentence = "pods of before have no owner's name"

var _ = Describe("a policy that is newer than pods, and judges their updates", func() {
	It("keeps no other pod from anything, and says who refuses", func(ctx SpecContext) {
		ns := running(ctx, 3)
		refuse(ctx, ns)
		patch(ctx, ns, `{"spec":{"replicas":4}}`)
		hears(ctx, ns, "WriteRefused").Should(ContainElements(
			And(HaveField("InvolvedObject.Kind", "Pod"), HaveField("Message", ContainSubstring(sentence))),
			And(HaveField("InvolvedObject.Kind", "Deployment"), HaveField("Message", ContainSubstring(sentence)))))
		s, err := store.New(config, clock.RealClock{})
		Expect(err).NotTo(HaveOccurred())
		report, err := inspect.Verify(ctx, s, kinds.Ref{APIVersion: "apps/v1", Kind: kinds.Deployment, Namespace: ns, Name: worker})
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Findings).To(ContainElement(And(HaveField("Kind", "writeRefused"), HaveField("Detail", ContainSubstring(sentence)))))
		explained, err := inspect.Explain(ctx, s, ns, pods(ctx, ns)[0].Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(explained.Reasons).To(ContainElement(ContainSubstring(sentence)))

		patch(ctx, ns, fmt.Sprintf(versioned, "2", "null"))
		rolled(ctx, ns, "2", 4)
		report, err = inspect.Verify(ctx, s, kinds.Ref{APIVersion: "apps/v1", Kind: kinds.Deployment, Namespace: ns, Name: worker})
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Findings).To(BeEmpty())
	})
})

// refuse has a policy refuse updates of the namespace's pods without a version, and waits until it does.
func refuse(ctx context.Context, namespace string) {
	GinkgoHelper()
	policies, bindings := client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	_, err := policies.Create(ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "'version' in object.metadata.?annotations.orValue({})", Message: sentence}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = bindings.Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // it has a context of its own
		Expect(bindings.Delete(ctx, namespace, metav1.DeleteOptions{})).To(Succeed())
		Expect(policies.Delete(ctx, namespace, metav1.DeleteOptions{})).To(Succeed())
	})
	old := pods(ctx, namespace)[0].Name
	Eventually(func(ctx context.Context) error {
		_, err := client.CoreV1().Pods(namespace).Patch(ctx, old, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}).WithContext(ctx).Should(MatchError(ContainSubstring(sentence)))
}
