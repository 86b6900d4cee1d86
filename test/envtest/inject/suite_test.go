package inject

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/specs"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

var (
	plane  *controlplane.ControlPlane //nolint:gochecknoglobals // Ginkgo's specs share what BeforeSuite made
	client kubernetes.Interface       //nolint:gochecknoglobals // the same
)

func TestInject(t *testing.T) {
	specs.Run(t, "inject", 2*time.Minute, patience)
}

// patience is for one spec.
const patience = 5 * time.Minute

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	plane, err = controlplane.Start(ctx, controlplane.Options{Log: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	client, err = kubernetes.NewForConfig(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	Expect(suite.Install(ctx, client,
		"policy/policy.yaml", "inject/refusal.yaml", "inject/strategy.yaml", "policy/binding.yaml", "inject/refusal-binding.yaml",
		"inject/strategy-binding.yaml", "inject/policy.yaml", "inject/binding.yaml",
		"assign/refusal.yaml", "assign/controller.yaml", "assign/refusal-binding.yaml", "assign/controller-binding.yaml", "assign/policy.yaml", "assign/binding.yaml",
	)).To(Succeed())
})

// newNamespace makes a namespace with what config/base has in it, and waits until pods can be created and get the sidecar.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	options := metav1.CreateOptions{}
	space, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "idalloc-"}}, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
		Expect(client.CoreV1().Namespaces().Delete(ctx, space.Name, metav1.DeleteOptions{})).To(Succeed())
	}, NodeTimeout(patience))
	_, err = client.CoreV1().ServiceAccounts(space.Name).Create(ctx, specs.Manifest[*corev1.ServiceAccount]("config/base/serviceaccount.yaml"), options)
	Expect(err).NotTo(HaveOccurred())
	for _, account := range []string{"program", "other"} {
		_, err := client.CoreV1().ServiceAccounts(space.Name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, options)
		Expect(err).NotTo(HaveOccurred())
	}
	_, err = client.RbacV1().Roles(space.Name).Create(ctx, specs.Manifest[*rbacv1.Role]("config/base/role.yaml"), options)
	Expect(err).NotTo(HaveOccurred())
	binding := specs.Manifest[*rbacv1.RoleBinding]("config/base/rolebinding.yaml")
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
