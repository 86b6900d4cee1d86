package policy

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/idalloc/idalloc/test/envtest/specs"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// bindCluster binds a ClusterRole in a namespace.
func bindCluster(ctx context.Context, ns *suite.Namespace, role string, subject rbacv1.Subject) {
	GinkgoHelper()
	_, err := env.Client.RbacV1().RoleBindings(ns.Name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role + "-" + subject.Name}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("others", func() {
	var ns *suite.Namespace
	BeforeEach(func(ctx SpecContext) {
		var err error
		ns, err = env.NewNamespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(ns.Delete)
		Expect(ns.Create(ctx, suite.Deployment(theDeployment, 0, suite.PodSpec(idle())))).To(Succeed())
	})

	DescribeTable("are not limited, though they have the mark's verb: service accounts with", func(ctx SpecContext, role string) {
		Expect(ns.Grant(ctx, "deployer", mark())).To(Succeed())
		bindCluster(ctx, ns, role, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "deployer", Namespace: ns.Name})
		deployer := withoutPod(ctx, ns.Name, "deployer")
		deployer.free(ctx, deployments, theDeployment)
		Expect(deployer.merge(ctx, deployments, theDeployment, `{"spec":{"replicas":3}}`)).To(Succeed())
	},
		Entry("all rights", "cluster-admin", SpecTimeout(patience)),
		Entry("the rights of the namespace's administrator", "admin", SpecTimeout(patience)),
	)

	It("may mark accounts if they administer the namespace, and not if they only edit it", func(ctx SpecContext) {
		as := func(clusterRole string) kubernetes.Interface {
			user := "person-with-" + clusterRole
			config, err := env.ControlPlane.AddUser(user)
			Expect(err).NotTo(HaveOccurred())
			bindCluster(ctx, ns, clusterRole, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
			client, err := kubernetes.NewForConfig(config)
			Expect(err).NotTo(HaveOccurred())
			return client
		}
		role := specs.Manifest[*rbacv1.Role]("config/base/role.yaml")
		role.Name = "another"
		create := func(client kubernetes.Interface) error {
			_, err := client.RbacV1().Roles(ns.Name).Create(ctx, role, metav1.CreateOptions{DryRun: dryRun})
			return err
		}
		admin, editor := as("admin"), as("edit")
		Eventually(create).WithArguments(admin).WithContext(ctx).Should(Succeed())
		Expect(create(editor)).To(Satisfy(apierrors.IsForbidden))
	})
})
