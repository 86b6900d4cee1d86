package helm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/helm"
)

const name = "idalloc"

// served is the controller's value with the namespaces that it serves.
const served = "namespaces"

// cluster is an API server, and Helm as its administrator runs it.
type cluster struct {
	kubernetes.Interface

	command helm.Command
}

func start(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Log: testr.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := cp.Kubeconfig(controlplane.Admin)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{client, helm.Command{Kubeconfig: kubeconfig, Home: t.TempDir()}}
}

// helm runs the command, and does not wait for what it makes: no pod runs here.
func (c *cluster) helm(t *testing.T, v values, args ...string) (string, error) {
	t.Helper()
	return c.command.Run(t.Context(), v, append(args, "--namespace", metav1.NamespaceDefault)...)
}

func (c *cluster) must(t *testing.T, v values, args ...string) string {
	t.Helper()
	said, err := c.helm(t, v, args...)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

func TestTheChartIsInstalledUpgradedAndUninstalled(t *testing.T) {
	client := start(t)
	admission, roles := client.AdmissionregistrationV1(), client.RbacV1().ClusterRoles()

	client.must(t, values{actions: []any{"Warn", "Audit"}}, "install", name, "CHART")
	expect(t, client, admissionv1.Warn, admissionv1.Audit)

	client.must(t, values{"aggregateToAdmin": false, inject: values{on: true}}, "upgrade", name, "CHART")
	expect(t, client, admissionv1.Deny)
	role, err := roles.Get(t.Context(), "idalloc-grant", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, has := role.Labels["rbac.authorization.k8s.io/aggregate-to-admin"]; has {
		t.Error("the ClusterRole still goes to all administrators")
	}

	if _, err := admission.MutatingAdmissionPolicies().Get(t.Context(), "idalloc-inject", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	client.must(t, nil, "uninstall", name)
	_, policyErr := admission.ValidatingAdmissionPolicies().Get(t.Context(), name, metav1.GetOptions{})
	_, bindingErr := admission.ValidatingAdmissionPolicyBindings().Get(t.Context(), name, metav1.GetOptions{})
	_, roleErr := roles.Get(t.Context(), "idalloc-grant", metav1.GetOptions{})
	_, leasesErr := admission.ValidatingAdmissionPolicies().Get(t.Context(), name+"-leases", metav1.GetOptions{})
	_, injectErr := admission.MutatingAdmissionPolicies().Get(t.Context(), "idalloc-inject", metav1.GetOptions{})
	for what, err := range map[string]error{"policy": policyErr, "policy of Leases": leasesErr, "policy of injection": injectErr, "binding": bindingErr, "ClusterRole": roleErr} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("the %s is left: %v", what, err)
		}
	}
}

// A pod that asks for an id never starts without one, although the chart that gave ids is gone.
func TestTheRemovedChartLeavesWhatRefusesPodsWithoutAnID(t *testing.T) {
	client := start(t)
	client.must(t, nil, "install", name, "CHART")
	client.must(t, nil, "uninstall", name)

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}} // nothing makes it here
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(t.Context(), account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	create := func(label string, gates ...corev1.PodSchedulingGate) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "worker-", Labels: map[string]string{label: controller}},
			Spec:       corev1.PodSpec{SchedulingGates: gates, Containers: []corev1.Container{{Name: "main", Image: "main"}}},
		}
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), pod, metav1.CreateOptions{})
		return err
	}
	const label = "idalloc.dev/assign"
	g := gomega.NewWithT(t)
	g.Eventually(func() error { return create(label) }).WithTimeout(time.Minute).Should(
		gomega.MatchError(gomega.ContainSubstring("out of the pod template (kubectl idalloc release)")), "without a gate")
	g.Eventually(func() error { return create(label, corev1.PodSchedulingGate{Name: "idalloc.dev/id"}) }).WithTimeout(time.Minute).Should(gomega.Succeed(),
		"with a gate, once the API server has seen that the controller's policies are gone")
	if err := create("app"); err != nil {
		t.Errorf("a pod that asks for no id: %v", err)
	}

	if _, err := client.helm(t, nil, "install", "other", "CHART"); err == nil {
		t.Error("a release of another name took it over")
	}
	client.must(t, nil, "install", name, "CHART") // the same name
}

// Each tenant's policies complete the pods of its own namespace, once, and of no other.
func TestTwoTenantsCompleteTheirOwnPods(t *testing.T) {
	client := start(t)
	o := metav1.CreateOptions{}
	for _, space := range []string{"a", "b", "c"} {
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}, o); err != nil {
			t.Fatal(err)
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}} // nothing makes it here
		if _, err := client.CoreV1().ServiceAccounts(space).Create(t.Context(), account, o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	tenant := func(space string) values {
		return values{"policies": values{on: false}, controller: values{served: []any{space}}, inject: values{on: true}}
	}
	for release, v := range map[string]values{name: {controller: values{on: false}}, "one": tenant("a"), "two": tenant("b")} {
		client.must(t, v, "install", release, "CHART")
	}
	create := func(space, label, value string) (*corev1.Pod, error) {
		return client.CoreV1().Pods(space).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "probe", Labels: map[string]string{label: value}, Annotations: map[string]string{"inject.idalloc.dev/service-account": "default"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "probe", UID: "c0ffee", Controller: new(true)}},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	g := gomega.NewWithT(t)
	once := func(space string) {
		for label, has := range map[string]struct{ value, variable string }{"idalloc.dev/assign": {controller, "IDALLOC_ID"}, "idalloc.dev/inject": {"true", "IDALLOC_URL"}} {
			g.Eventually(func(g gomega.Gomega) {
				pod, err := create(space, label, has.value)
				g.Expect(err).NotTo(gomega.HaveOccurred())
				g.Expect(count(pod.Spec.Volumes, func(v corev1.Volume) string { return v.Name }, name)).To(gomega.Equal(1), "volumes %v", pod.Spec.Volumes)
				variables := pod.Spec.Containers[0].Env
				g.Expect(count(variables, func(v corev1.EnvVar) string { return v.Name }, has.variable)).To(gomega.Equal(1), "variables %v", variables)
				g.Expect(len(pod.Spec.SchedulingGates) + len(pod.Spec.InitContainers)).To(gomega.Equal(1))
			}).WithTimeout(time.Minute).Should(gomega.Succeed(), "label %s in namespace %s", label, space)
		}
	}
	none := func(space string, refuses ...string) {
		for i, label := range []string{"idalloc.dev/assign", "idalloc.dev/inject"} {
			g.Eventually(func() error {
				_, err := create(space, label, []string{controller, "true"}[i])
				return err
			}).WithTimeout(time.Minute).Should(gomega.MatchError(gomega.ContainSubstring(refuses[i])), "label %s in namespace %s", label, space)
		}
	}
	const gate, sidecar = "'idalloc-gate'", "asks for idalloc's sidecar and has not got it"
	once("a")
	once("b")
	none("c", gate, sidecar)

	client.must(t, nil, "uninstall", "one")
	none("a", gate, sidecar)
	once("b")
}

// count returns how many items have the name.
func count[T any](items []T, nameOf func(T) string, name string) (n int) {
	for _, item := range items {
		if nameOf(item) == name {
			n++
		}
	}
	return n
}

// expect sees the policies, and what their bindings do.
func expect(t *testing.T, client kubernetes.Interface, want ...admissionv1.ValidationAction) {
	t.Helper()
	for _, name := range []string{name, name + "-leases"} {
		if _, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		binding, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(binding.Spec.ValidationActions, want) {
			t.Errorf("the binding %s does %v, not %v", name, binding.Spec.ValidationActions, want)
		}
	}
}
