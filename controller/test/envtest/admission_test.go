package envtest

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/controller/internal/webhook"
	"github.com/idalloc/idalloc/internal/check"
	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/specs"
)

// The namespaces of the policies and of the webhook have this label with one of these values. A namespace without it has neither.
const (
	completes = "completes-pods"
	policies  = "policies"
	byWebhook = "webhook"
)

// row is one of testdata/pods.yaml.
type row struct {
	Name     string            `json:"name"`
	By       string            `json:"by"`
	Refused  bool              `json:"refused"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     corev1.PodSpec    `json:"spec"`
}

func rows() (all []row) {
	text, err := os.ReadFile("testdata/pods.yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.UnmarshalStrict(text, &all)).To(Succeed())
	return all
}

func (r row) pod() *corev1.Pod {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: *r.Metadata.DeepCopy(), Spec: *r.Spec.DeepCopy()}
	asks := map[string]map[string]string{
		"assign": {receipt.AssignLabel: receipt.ByController}, "inject": {inject.Label: "true"}, "agent": {receipt.AssignLabel: receipt.ByAgent, inject.Label: "true"},
	}[r.By]
	maps.Copy(asks, pod.Labels)
	pod.Labels = asks
	if pod.Name == "" {
		pod.GenerateName = "worker-5d9-"
	}
	if pod.OwnerReferences == nil {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "worker-5d9", UID: "c0ffee", Controller: new(true)}}
	}
	return pod
}

// admit returns the pod that the API server would store.
func admit(ctx context.Context, namespace string, pod *corev1.Pod) (*corev1.Pod, error) {
	pod, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.UID, pod.ResourceVersion, pod.Namespace, pod.CreationTimestamp, pod.ManagedFields, pod.Status = "", "", "", metav1.Time{}, nil, corev1.PodStatus{}
	return pod, nil
}

var (
	tokenName = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`)
	podName   = regexp.MustCompile(`"name":"worker-5d9-[a-z0-9]{5}"`)
)

// bytesOf returns the JSON of a pod without the names that the API server makes up.
func bytesOf(pod *corev1.Pod) string {
	GinkgoHelper()
	text, err := json.Marshal(pod)
	Expect(err).NotTo(HaveOccurred())
	return podName.ReplaceAllString(tokenName.ReplaceAllString(string(text), "kube-api-access-x"), `"name":"x"`)
}

// completed returns what internal/inject makes of a pod.
func completed(pod *corev1.Pod) (*corev1.Pod, error) {
	GinkgoHelper()
	text, err := json.Marshal(pod)
	Expect(err).NotTo(HaveOccurred())
	text, err = inject.Pod(text, "")
	if err != nil {
		return nil, err
	}
	var result corev1.Pod
	Expect(json.Unmarshal(text, &result)).To(Succeed())
	return &result, nil
}

// space makes a namespace in whose pods this way completes.
func space(ctx context.Context, way string) string {
	GinkgoHelper()
	name := newNamespace(ctx)
	if way != "" {
		_, err := client.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"`+completes+`":"`+way+`"}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	for _, account := range []string{"idalloc", "program", "other"} {
		_, err := client.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	return name
}

// installPolicies installs those that complete pods for one way, and those that refuse pods for both.
func installPolicies(ctx context.Context) {
	GinkgoHelper()
	api, o := client.AdmissionregistrationV1(), metav1.CreateOptions{}
	one := &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{completes: policies}}}
	both := &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: completes, Operator: metav1.LabelSelectorOpExists}}}}
	for _, dir := range []string{"config/assign/", "config/inject/"} {
		_, err := api.ValidatingAdmissionPolicies().Create(ctx, specs.Manifest[*admissionv1.ValidatingAdmissionPolicy](dir+"refusal.yaml"), o)
		Expect(err).NotTo(HaveOccurred())
		refusal := specs.Manifest[*admissionv1.ValidatingAdmissionPolicyBinding](dir + "refusal-binding.yaml")
		refusal.Spec.MatchResources = both
		_, err = api.ValidatingAdmissionPolicyBindings().Create(ctx, refusal, o)
		Expect(err).NotTo(HaveOccurred())
		_, err = api.MutatingAdmissionPolicies().Create(ctx, specs.Manifest[*admissionv1.MutatingAdmissionPolicy](dir+"policy.yaml"), o)
		Expect(err).NotTo(HaveOccurred())
		binding := specs.Manifest[*admissionv1.MutatingAdmissionPolicyBinding](dir + "binding.yaml")
		binding.Spec.MatchResources = one
		_, err = api.MutatingAdmissionPolicyBindings().Create(ctx, binding, o)
		Expect(err).NotTo(HaveOccurred())
	}
}

// installWebhook installs config/webhook for a webhook that is served at a port of this machine: an ExternalName stands for the Service.
func installWebhook(ctx context.Context, port int32) {
	GinkgoHelper()
	o := metav1.CreateOptions{}
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "idalloc-system"}}, o)
	Expect(err).NotTo(HaveOccurred())
	service := specs.Manifest[*corev1.Service]("config/webhook/service.yaml")
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
	_, err = client.CoreV1().Services("idalloc-system").Create(ctx, service, o)
	Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().Secrets("idalloc-system").Create(ctx, specs.Manifest[*corev1.Secret]("config/webhook/secret.yaml"), o)
	Expect(err).NotTo(HaveOccurred())
	hooks := specs.Manifest[*admissionv1.MutatingWebhookConfiguration]("config/webhook/webhook.yaml")
	for i := range hooks.Webhooks {
		hooks.Webhooks[i].ClientConfig.Service.Port = &port
		hooks.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{completes: byWebhook}}
	}
	_, err = client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, hooks, o)
	Expect(err).NotTo(HaveOccurred())
}

// serveWebhook serves config/webhook at a port until stop is called, and returns the check of readiness. The certificates are those of a folder, if it
// names one.
func serveWebhook(port int32, folder string) (ready healthz.Checker, stop func()) {
	GinkgoHelper()
	mgr, err := manager.New(config, manager.Options{Scheme: scheme.Scheme, Logger: GinkgoLogr, Metrics: server.Options{BindAddress: "0"}})
	Expect(err).NotTo(HaveOccurred())
	ready, err = webhook.Setup(context.Background(), mgr, webhook.Options{Name: "idalloc-webhook", Namespace: "idalloc-system", Host: "127.0.0.1", Port: int(port), CertDir: folder}, GinkgoLogr)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return ready, func() {
		GinkgoHelper()
		cancel()
		Expect(<-ended).To(Succeed())
	}
}

// checked is the row of kubectl idalloc check about the pods' completion, on a cluster that is too old for policies.
func checked(ctx context.Context, namespace string) check.Row {
	GinkgoHelper()
	d, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	all, err := check.Cluster(ctx, check.Options{Dynamic: d, Server: "v1.35.4", Namespace: namespace})
	Expect(err).NotTo(HaveOccurred())
	for _, r := range all {
		if r.Part == "mutating policy idalloc-assign" {
			return r
		}
	}
	Fail("check has no row about it")
	return check.Row{}
}

var _ = Describe("the policies, the webhook and internal/inject", Ordered, ContinueOnFailure, func() {
	var (
		bare, withPolicies, withWebhook string
		port                            int32
		stop                            func()
	)
	plain := row{By: "assign", Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}}}

	BeforeAll(func(ctx SpecContext) {
		bare, withPolicies, withWebhook = space(ctx, ""), space(ctx, policies), space(ctx, byWebhook)
		var err error
		port, err = controlplane.FreePort(ctx)
		Expect(err).NotTo(HaveOccurred())
		installPolicies(ctx)
		installWebhook(ctx, port)
		var ready healthz.Checker
		ready, stop = serveWebhook(port, "")
		DeferCleanup(func() { stop() })
		Eventually(func() error { return ready(nil) }).WithContext(ctx).Should(Succeed())
		for _, namespace := range []string{withPolicies, withWebhook} {
			for _, by := range []string{"assign", "inject"} {
				Eventually(func(g Gomega, ctx context.Context) {
					asks, wrong := row{By: by, Spec: plain.Spec}.pod(), plain.pod()
					g.Expect(admit(ctx, namespace, asks)).To(HaveField("Spec.Volumes", ContainElement(HaveField("Name", "idalloc"))))
					wrong.Labels = map[string]string{"idalloc.dev/" + by: "perhaps"}
					_, err := admit(ctx, namespace, wrong)
					g.Expect(err).To(MatchError(ContainSubstring(`is "perhaps": use "`)))
				}).WithContext(ctx).Should(Succeed())
			}
		}
	})

	It("give every pod of the table the same bytes", func(ctx SpecContext) {
		all := rows()
		Expect(len(all)).To(BeNumerically(">=", 40))
		for _, r := range all {
			By(r.By + ": " + r.Name)
			sent, err := admit(ctx, bare, r.pod())
			if err != nil { // for example, it mounts a volume that it has not got yet
				sent = r.pod()
			}
			want, refused := completed(sent)
			if refused == nil {
				want, refused = admit(ctx, bare, want)
			}
			policy, errPolicy := admit(ctx, withPolicies, r.pod())
			hook, errHook := admit(ctx, withWebhook, r.pod())
			if r.Refused {
				Expect(errPolicy).To(HaveOccurred(), r.Name)
				Expect(errHook).To(HaveOccurred(), r.Name)
				continue
			}
			Expect(refused).NotTo(HaveOccurred(), r.Name)
			Expect(errPolicy).NotTo(HaveOccurred(), r.Name)
			Expect(errHook).NotTo(HaveOccurred(), r.Name)
			Expect(bytesOf(policy)).To(Equal(bytesOf(want)), "by policy: "+r.Name)
			Expect(bytesOf(hook)).To(Equal(bytesOf(want)), "by webhook: "+r.Name)

			again, err := completed(want)
			Expect(err).NotTo(HaveOccurred(), r.Name)
			Expect(bytesOf(again)).To(Equal(bytesOf(want)), "again: "+r.Name)
			for _, namespace := range []string{withPolicies, withWebhook} {
				Expect(admit(ctx, namespace, want)).To(WithTransform(bytesOf, Equal(bytesOf(want))), "again: "+r.Name)
			}
		}
	})

	It("refuse a pod with the sentence of kubectl idalloc inject", func(ctx SpecContext) {
		for _, r := range slices.DeleteFunc(rows(), func(r row) bool { return !r.Refused }) {
			if _, err := completed(r.pod()); err != nil {
				_, refused := admit(ctx, withWebhook, r.pod())
				Expect(refused).To(MatchError(ContainSubstring(err.Error())), r.Name)
			}
		}
	})

	It("can be served with certificates from a folder, as cert-manager's", func(ctx SpecContext) {
		secret, err := client.CoreV1().Secrets("idalloc-system").Get(ctx, "idalloc-webhook", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		folder := GinkgoT().TempDir()
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			Expect(os.WriteFile(filepath.Join(folder, key), secret.Data[key], 0o600)).To(Succeed())
		}
		stop()
		var ready healthz.Checker
		ready, stop = serveWebhook(port, folder)
		Eventually(func() error { return ready(nil) }).WithContext(ctx).Should(Succeed())
		Eventually(func(ctx context.Context) error {
			_, err := admit(ctx, withWebhook, plain.pod())
			return err
		}).WithContext(ctx).Should(Succeed())
	})

	It("stop no pod without the label while the webhook is down, and say what to do for one with it", func(ctx SpecContext) {
		stop()
		_, err := admit(ctx, withWebhook, plain.pod())
		Expect(err).To(MatchError(ContainSubstring(`"idalloc-controller-does-not-answer.run-kubectl-idalloc-check.assign.idalloc.dev"`)))
		other := plain.pod()
		other.Labels = nil
		Expect(admit(ctx, withWebhook, other)).To(HaveField("Spec.SchedulingGates", BeEmpty()))
		Expect(checked(ctx, withWebhook)).To(And(HaveField("State", check.Broken), HaveField("Detail", ContainSubstring("failed calling webhook"))))
		_, stop = serveWebhook(port, "")
		Eventually(func(ctx context.Context) error {
			_, err := admit(ctx, withWebhook, plain.pod())
			return err
		}).WithContext(ctx).Should(Succeed())
		Expect(checked(ctx, withWebhook)).To(HaveField("State", check.InForce))
	})
})
