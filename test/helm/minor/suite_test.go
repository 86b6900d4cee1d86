package minor

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/specs"
	"github.com/idalloc/idalloc/test/envtest/suite"
	"github.com/idalloc/idalloc/test/helm"
)

const (
	// release is the namespace of the chart: the programs on the process node take it for their own.
	release = metav1.NamespaceDefault
	hook    = "idalloc-webhook"
)

//nolint:gochecknoglobals // Ginkgo's specs share what BeforeSuite made
var (
	env *suite.Suite
	// server is the version of the API server, and is its row in the table.
	server string
	is     controlplane.Minor
	// controller is the built program.
	controller string
	admin      string
	port       int32
)

func TestMinor(t *testing.T) { specs.Run(t, "minor", time.Minute, 2*time.Minute) }

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	controller, err = suite.Build(ctx, GinkgoT().TempDir(), "./controller/cmd/idalloc-controller")
	Expect(err).NotTo(HaveOccurred())
	env, err = suite.Start(ctx, suite.Options{BoundTokens: true, Images: map[string]string{"ghcr.io/idalloc/idalloc-controller": controller}, Log: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin, err = env.ControlPlane.Kubeconfig(controlplane.Admin)
	Expect(err).NotTo(HaveOccurred())
	version, err := env.Client.Discovery().ServerVersion()
	Expect(err).NotTo(HaveOccurred())
	server = version.GitVersion
	port, err = controlplane.FreePort(ctx)
	Expect(err).NotTo(HaveOccurred())
	all, err := controlplane.Minors()
	Expect(err).NotTo(HaveOccurred())
	for _, m := range all {
		if strings.HasPrefix(server, "v"+m.Name()+".") {
			is = m
		}
	}
	Expect(is.Version).NotTo(BeEmpty(), "hack/controlplane/minors lacks the version %s", server)
})

const name = "idalloc"

// asAdmin is what an administrator's Helm works with.
func asAdmin() helm.Command { return helm.Command{Kubeconfig: admin, Home: GinkgoT().TempDir()} }

// tested is "helm test". It returns what its pod prints.
func tested(ctx context.Context) string {
	GinkgoHelper()
	path := env.Node.Logs(release, name+"-check", "check")
	before, _ := os.ReadFile(path) //nolint:gosec // below the node's directory
	_, err := asAdmin().Run(ctx, nil, "test", name, "--namespace", release, "--timeout", "1m")
	after, unread := os.ReadFile(path)                       //nolint:gosec // below the node's directory
	log := strings.TrimPrefix(string(after), string(before)) // pods of one name share the file
	Expect(err).NotTo(HaveOccurred(), "%s", log)
	Expect(unread).NotTo(HaveOccurred())
	return log
}

// install installs the chart, or upgrades it, with a value of admission, and waits until its controller is available. An address of the pod's own
// is what each of its ports has on a cluster.
func install(ctx context.Context, admission string) {
	GinkgoHelper()
	values := helm.Values{
		"admission": admission,
		"inject":    map[string]any{"enabled": true},
		"controller": map[string]any{
			"replicas": 1,
			"extraEnv": []any{map[string]any{"name": "POD_IP", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "status.podIP"}}}},
			"extraArgs": []any{
				"--health-address=$(POD_IP):8081", "--metrics-address=$(POD_IP):8080", "--leader-election-namespace=" + release,
				"--webhook-port=" + strconv.Itoa(int(port)),
			},
		},
	}
	_, err := asAdmin().Run(ctx, values, "upgrade", "--install", name, "CHART", "--namespace", release)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega, ctx context.Context) {
		d, err := env.Client.AppsV1().Deployments(release).Get(ctx, "idalloc-controller", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		g.Expect([]int32{d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas}).To(HaveEach(int32(1)))
	}).WithContext(ctx).Should(Succeed())
}

// reach leads the API server to the webhook: nothing routes a Service here. It reports whether the chart has a webhook.
func reach(ctx context.Context) bool {
	GinkgoHelper()
	hooks := env.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	all, err := hooks.List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	if len(all.Items) == 0 {
		return false
	}
	Expect(all.Items).To(HaveExactElements(HaveField("Name", hook)))
	for i := range all.Items[0].Webhooks {
		all.Items[0].Webhooks[i].ClientConfig.Service.Port = &port
	}
	_, err = hooks.Update(ctx, &all.Items[0], metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	service, err := env.Client.CoreV1().Services(release).Get(ctx, hook, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
	_, err = env.Client.CoreV1().Services(release).Update(ctx, service, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return true
}

// prints runs a program as the administrator, and returns what it prints.
func prints(ctx context.Context, program string, args ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // what is under test
	cmd.Env = append(os.Environ(), "KUBECONFIG="+admin)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	return string(out)
}

// verified expects that verify finds nothing.
func verified(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(prints(ctx, env.Binary, "verify", "Deployment/worker", "-n", namespace, "--wait=30s")).To(ContainSubstring("Deployment/worker: ok"))
}
