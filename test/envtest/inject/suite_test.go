package inject

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

var (
	plane  *controlplane.ControlPlane //nolint:gochecknoglobals // Ginkgo's specs share what BeforeSuite made
	client kubernetes.Interface       //nolint:gochecknoglobals // the same
)

func TestInject(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	AddTreeConstructionNodeArgsTransformer(bounded)
	RunSpecs(t, "inject")
}

// patience is many times what the longest spec needs. A spec that hangs fails by its name, long before the whole suite does.
const patience = 5 * time.Minute

func bounded(nodeType types.NodeType, _ Offset, text string, args []any) (string, []any, []error) {
	if nodeType == types.NodeTypeIt {
		args = append(args, SpecTimeout(patience))
	}
	return text, args, nil
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	plane, err = controlplane.Start(ctx, controlplane.Options{Log: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	client, err = kubernetes.NewForConfig(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	install(ctx)
})

// install creates what config/policy and config/inject have.
func install(ctx context.Context) {
	GinkgoHelper()
	options := metav1.CreateOptions{}
	admission := client.AdmissionregistrationV1()
	for _, file := range [][]string{{"policy", "policy.yaml"}, {"inject", "refusal.yaml"}, {"inject", "strategy.yaml"}} {
		_, err := admission.ValidatingAdmissionPolicies().Create(ctx, manifest[*admissionv1.ValidatingAdmissionPolicy](file...), options)
		Expect(err).NotTo(HaveOccurred())
	}
	for _, file := range [][]string{{"policy", "binding.yaml"}, {"inject", "refusal-binding.yaml"}, {"inject", "strategy-binding.yaml"}} {
		_, err := admission.ValidatingAdmissionPolicyBindings().Create(ctx, manifest[*admissionv1.ValidatingAdmissionPolicyBinding](file...), options)
		Expect(err).NotTo(HaveOccurred())
	}
	_, err := admission.MutatingAdmissionPolicies().Create(ctx, manifest[*admissionv1.MutatingAdmissionPolicy]("inject", "policy.yaml"), options)
	Expect(err).NotTo(HaveOccurred())
	_, err = admission.MutatingAdmissionPolicyBindings().Create(ctx, manifest[*admissionv1.MutatingAdmissionPolicyBinding]("inject", "binding.yaml"), options)
	Expect(err).NotTo(HaveOccurred())
}

// manifest reads a file of config/. Unknown fields are errors.
func manifest[T runtime.Object](path ...string) T {
	GinkgoHelper()
	root, err := controlplane.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(filepath.Join(append([]string{root, "config"}, path...)...))
	Expect(err).NotTo(HaveOccurred())
	object, _, err := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode(content, nil, nil)
	Expect(err).NotTo(HaveOccurred())
	typed, ok := object.(T)
	Expect(ok).To(BeTrue(), "%v: %T", path, object)
	return typed
}

// newNamespace makes a namespace with what config/base has in it, and waits until pods can be created and get the sidecar.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	options := metav1.CreateOptions{}
	space, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "idalloc-"}}, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
		Expect(client.CoreV1().Namespaces().Delete(ctx, space.Name, metav1.DeleteOptions{})).To(Succeed())
	}, NodeTimeout(patience))
	_, err = client.CoreV1().ServiceAccounts(space.Name).Create(ctx, manifest[*corev1.ServiceAccount]("base", "serviceaccount.yaml"), options)
	Expect(err).NotTo(HaveOccurred())
	for _, account := range []string{"program", "other"} {
		_, err := client.CoreV1().ServiceAccounts(space.Name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, options)
		Expect(err).NotTo(HaveOccurred())
	}
	_, err = client.RbacV1().Roles(space.Name).Create(ctx, manifest[*rbacv1.Role]("base", "role.yaml"), options)
	Expect(err).NotTo(HaveOccurred())
	binding := manifest[*rbacv1.RoleBinding]("base", "rolebinding.yaml")
	binding.Subjects[0].Namespace = space.Name
	_, err = client.RbacV1().RoleBindings(space.Name).Create(ctx, binding, options)
	Expect(err).NotTo(HaveOccurred())
	template := templateOf(plain)
	Eventually(func(g Gomega) {
		pod, err := create(ctx, space.Name, template)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pod.Annotations).To(HaveKey("idalloc.dev/injected"))
		template := template.DeepCopy()
		template.Labels["idalloc.dev/inject"] = "perhaps"
		_, err = create(ctx, space.Name, template)
		g.Expect(err).To(MatchError(ContainSubstring("ValidatingAdmissionPolicy 'idalloc-inject'")))
	}).WithContext(ctx).Should(Succeed())
	return space.Name
}
