package policy

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

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

// install creates what config/policy has.
func install(ctx context.Context) {
	GinkgoHelper()
	options := metav1.CreateOptions{}
	for _, file := range []string{"policy.yaml", "leases.yaml"} {
		_, err := env.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, manifest[*admissionv1.ValidatingAdmissionPolicy]("policy", file), options)
		Expect(err).NotTo(HaveOccurred())
	}
	bind(ctx, "leases-binding.yaml")
	_, err := env.Client.RbacV1().ClusterRoles().Create(ctx, manifest[*rbacv1.ClusterRole]("policy", "clusterrole.yaml"), options)
	Expect(err).NotTo(HaveOccurred())
	bind(ctx, "binding.yaml")
}

func bind(ctx context.Context, file string) {
	GinkgoHelper()
	_, err := env.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx,
		manifest[*admissionv1.ValidatingAdmissionPolicyBinding]("policy", file), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("the policies", func() {
	DescribeTable("have no expression that the API server warns of", func(ctx SpecContext, name string) {
		Eventually(func(g Gomega) {
			policy, err := env.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(policy.Status.ObservedGeneration).To(Equal(policy.Generation), "the types are checked")
			g.Expect(policy.Status.TypeChecking).To(HaveField("ExpressionWarnings", BeEmpty()))
		}).WithContext(ctx).Should(Succeed())
	},
		Entry("that of workloads and pods", "idalloc", SpecTimeout(patience)),
		Entry("that of Leases", "idalloc-leases", SpecTimeout(patience)),
	)

	It("can be seen by everybody, so that nobody works without them unawares", func(ctx SpecContext) {
		ns, err := env.NewNamespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(ns.Delete)
		config, err := ns.Config(ctx)
		Expect(err).NotTo(HaveOccurred())
		s, err := store.New(config, clock.RealClock{})
		Expect(err).NotTo(HaveOccurred())
		Expect(inspect.PolicyMissing(ctx, s)).To(ContainSubstring("you may not get validatingadmissionpolicies/idalloc, so nobody can tell here"))
		root, err := controlplane.ModuleRoot()
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "apply", "-f", filepath.Join(root, "config", "policy", "see.yaml"))
		Eventually(func() string { return inspect.PolicyMissing(ctx, s) }).WithContext(ctx).Should(BeEmpty())
	})
})
