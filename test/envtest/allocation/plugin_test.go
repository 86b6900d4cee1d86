package allocation

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// plugins is the folder from which kubectl takes the plugin, and the script that completes its words.
func plugins(ctx context.Context) string {
	GinkgoHelper()
	program := built(ctx, "./cmd/kubectl-idalloc")
	root, err := controlplane.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	const script = "kubectl_complete-idalloc"
	Expect(os.Symlink(filepath.Join(root, "cmd", "kubectl-idalloc", script), filepath.Join(filepath.Dir(program), script))).To(Succeed())
	return filepath.Dir(program)
}

var _ = Describe("the kubectl plugin", Ordered, func() {
	var (
		w   *workload
		dir string
	)
	BeforeAll(func(ctx SpecContext) {
		dir = plugins(ctx)
		w = newWorkload(ctx, kinds.Deployment)
		Expect(w.Create(ctx, suite.Deployment("worker", 2, w.podSpec()), suite.StatefulSet("plain", 1, suite.PodSpec(suite.Container("main", "/bin/sleep", "1000"))))).To(Succeed())
		w.settled(ctx, 2)
	})

	// as runs kubectl as a user.
	as := func(ctx context.Context, user string, args ...string) result {
		GinkgoHelper()
		kubeconfig, err := env.ControlPlane.Kubeconfig(user)
		Expect(err).NotTo(HaveOccurred())
		path := strings.Join([]string{dir, env.ControlPlane.Assets(), os.Getenv("PATH")}, string(os.PathListSeparator))
		return called(ctx, filepath.Join(env.ControlPlane.Assets(), "kubectl"), []string{"PATH=" + path, "HOME=" + GinkgoT().TempDir(), "KUBECONFIG=" + kubeconfig}, args...)
	}
	kubectl := func(ctx context.Context, args ...string) string {
		GinkgoHelper()
		got := as(ctx, controlplane.Admin, args...)
		Expect(got.Code).To(BeZero(), "%v: %s%s", args, got.Stdout, got.Stderr)
		return got.Stdout
	}
	fields := func(text string) []string {
		var lines []string
		for line := range strings.Lines(text) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		return lines
	}

	It("lists the workloads that use idalloc", func(ctx SpecContext) {
		all := fields(kubectl(ctx, "idalloc", "get", "-A"))
		Expect(all[0]).To(Equal("NAMESPACE NAME HELD WAITING CHANGING DEAD"))
		// The namespaces of other specs may still have workloads, bare ReplicaSets among them.
		own := slices.DeleteFunc(all, func(line string) bool { return !strings.HasPrefix(line, w.Name+" ") })
		Expect(own).To(Equal([]string{w.Name + " deployment.apps/worker 2/2 0 0 0"}),
			"neither plain, which does not use idalloc, nor a ReplicaSet, which has copies of its Deployment's annotations")
		Expect(fields(kubectl(ctx, "idalloc", "get", "sts,deploy", "-n", w.Name, "--no-headers"))).To(Equal([]string{"deployment.apps/worker 2/2 0 0 0"}))
		Expect(kubectl(ctx, "idalloc", "get", "-n", w.Name, "-o", "name")).To(Equal("deployment.apps/worker\n"))
		Expect(kubectl(ctx, "idalloc", "get", "-n", w.Name, "-l", "app=none")).To(BeEmpty())
		Expect(kubectl(ctx, "idalloc", "get", "deploy", "worker", "-n", w.Name, "-o", "jsonpath={.slots[*].state}")).To(Equal("held held"))
	})

	It("says which permission a person lacks, and whose it is", func(ctx SpecContext) {
		_, err := env.ControlPlane.AddUser("jane")
		Expect(err).NotTo(HaveOccurred())
		got := as(ctx, "jane", "idalloc", "get", "-A")
		Expect(got.Code).To(Equal(4), got.Stderr)
		Expect(got.Stderr).To(And(ContainSubstring(`add verb "list" on resource "deployments" of API group "apps" to a ClusterRole`), ContainSubstring(`User "jane"`)))
		got = as(ctx, "jane", "idalloc", "verify", "deploy/worker", "-n", w.Name)
		Expect(got.Code).To(Equal(4), got.Stderr)
		Expect(got.Stderr).To(And(ContainSubstring("to a Role of the account"), ContainSubstring(`User "jane"`), Not(ContainSubstring("pod's"))))
	})

	It("explains why a pod waits", func(ctx SpecContext) {
		pods, err := w.Pods(ctx, "worker")
		Expect(err).NotTo(HaveOccurred())
		Expect(kubectl(ctx, "idalloc", "explain", pods[0].Name, "-n", w.Name)).To(ContainSubstring("the pod has id "))

		got := kubectl(ctx, "idalloc", "explain", "plain-0", "-n", w.Name)
		Expect(got).To(And(ContainSubstring("the pod waits for an id of StatefulSet/plain"), ContainSubstring("idalloc has written nothing on the pod"), Not(ContainSubstring("service account"))))
		roles := env.Client.RbacV1().RoleBindings(w.Name)
		Expect(roles.Delete(ctx, suite.Account, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() string { return kubectl(ctx, "idalloc", "explain", "pod/plain-0", "-n", w.Name) }).WithContext(ctx).
			Should(ContainSubstring("the pod's service account idalloc may not: get statefulsets/plain"))
	})

	It("enables a workload: an account that may write its own workload, and the label", Label(nightly), func(ctx SpecContext) {
		const account = "plain-statefulset-idalloc"
		got := as(ctx, controlplane.Admin, "idalloc", "enable", "sts/plain", "-n", w.Name, "--dry-run=server")
		Expect(got.Code).To(BeZero(), got.Stderr)
		_, err := env.Client.RbacV1().Roles(w.Name).Get(ctx, account, metav1.GetOptions{})
		Expect(err).To(MatchError(ContainSubstring("not found")), "a dry run stores nothing")
		spec := suite.PodSpec(suite.Container("main", "/bin/sleep", "1000"))
		spec.ServiceAccountName = ""
		Expect(w.Create(ctx, suite.StatefulSet("free", 1, spec))).To(Succeed())
		got = as(ctx, controlplane.Admin, "idalloc", "enable", "sts/free", "-n", w.Name)
		Expect(got.Code).To(Equal(1))
		Expect(got.Stderr).To(And(ContainSubstring("the cluster has no validatingadmissionpolicies/idalloc"), ContainSubstring("kubectl apply -k config/policy, or say --without-policy")))
		_, err = env.Client.RbacV1().Roles(w.Name).Get(ctx, "free-statefulset-idalloc", metav1.GetOptions{})
		Expect(err).To(MatchError(ContainSubstring("not found")), "it has made nothing")
		for range 2 { // it does no harm to enable twice
			got = as(ctx, controlplane.Admin, "idalloc", "enable", "sts/free", "-n", w.Name, "--without-policy")
			Expect(got.Code).To(BeZero(), got.Stderr)
			Expect(got.Stderr).To(ContainSubstring("the cluster has no policy idalloc-inject"))
		}
		Expect(got.Stdout).To(ContainSubstring("rolebinding.rbac.authorization.k8s.io/free-statefulset-idalloc applied"))
		set, err := env.Client.AppsV1().StatefulSets(w.Name).Get(ctx, "free", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(set.Spec.Template.Labels).To(HaveKeyWithValue("idalloc.dev/inject", "true"))
		Expect(set.Spec.Template.Annotations).To(HaveKeyWithValue("inject.idalloc.dev/service-account", "free-statefulset-idalloc"))
		role, err := env.Client.RbacV1().Roles(w.Name).Get(ctx, "free-statefulset-idalloc", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(role.Rules).To(ContainElement(rbacv1.PolicyRule{
			APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, ResourceNames: []string{"free"}, Verbs: []string{"get", "list", "watch", "patch"},
		}))
		var list corev1.List
		Expect(json.Unmarshal([]byte(kubectl(ctx, "idalloc", "enable", "sts/free", "-n", w.Name, "--dry-run=client", "-o", "json")), &list)).To(Succeed())
		Expect(list.Items).To(HaveLen(3), "the label is set already")

		By("having the controller plan, and taking that back")
		template := func() map[string]string {
			GinkgoHelper()
			set, err := env.Client.AppsV1().StatefulSets(w.Name).Get(ctx, "free", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return set.Spec.Template.Labels
		}
		got = as(ctx, controlplane.Admin, "idalloc", "enable", "sts/free", "-n", w.Name, "--without-policy", "--by=agent")
		Expect(got.Code).To(BeZero(), got.Stderr)
		Expect(got.Stderr).To(ContainSubstring("it is missing: no Deployment idalloc-controller"))
		Expect(template()).To(HaveKeyWithValue("idalloc.dev/assign", "agent"))
		got = as(ctx, controlplane.Admin, "idalloc", "enable", "sts/free", "-n", w.Name, "--without-policy", "--by=sidecar")
		Expect(got.Code).To(BeZero(), got.Stderr)
		Expect(template()).To(And(HaveKeyWithValue("idalloc.dev/inject", "true"), Not(HaveKey("idalloc.dev/assign"))))

		By("releasing the workload")
		got = as(ctx, controlplane.Admin, "idalloc", "release", "sts/free", "-n", w.Name, "--dry-run=server")
		Expect(got.Stdout).To(Equal("statefulset.apps/free released (server dry run)\n"), got.Stderr)
		Expect(template()).To(HaveKey("idalloc.dev/inject"), "a dry run stores nothing")
		Expect(kubectl(ctx, "idalloc", "release", "sts/free", "-n", w.Name)).To(Equal("statefulset.apps/free released\n"))
		Expect(template()).NotTo(HaveKey("idalloc.dev/inject"))
		got = as(ctx, controlplane.Admin, "idalloc", "release", "sts/free", "-n", w.Name)
		Expect(got).To(And(HaveField("Code", BeZero()), HaveField("Stdout", BeEmpty()), HaveField("Stderr", ContainSubstring("asks for no id"))))
	})

	It("completes kinds, names, pods and namespaces, as kubectl asks for them", Label(nightly), func(ctx SpecContext) {
		complete := func(words ...string) []string {
			GinkgoHelper()
			return strings.Split(kubectl(ctx, append([]string{"__complete", "idalloc"}, words...)...), "\n")
		}
		Expect(complete("")).To(ContainElement(HavePrefix("explain")))
		Expect(complete("get", "stat")).To(ContainElement("statefulset/"))
		Expect(complete("get", "-n", w.Name, "deployment/")).To(ContainElement("deployment/worker"))
		Expect(complete("get", "-n", w.Name, "statefulset/")).NotTo(ContainElement("statefulset/plain"), "it does not use idalloc")
		Expect(complete("enable", "-n", w.Name, "sts/")).To(ContainElement("sts/plain"))
		Expect(complete("get", "-n", w.Name, "deploy", "")).To(ContainElement("worker"))
		Expect(complete("explain", "-n", w.Name, "pl")).To(ContainElement("plain-0"))
		Expect(complete("get", "-n", "idalloc-")).To(ContainElement(w.Name))
	})
})
