package minor

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/specs"
	"github.com/idalloc/idalloc/test/envtest/suite"
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
	server, port = version.GitVersion, freePort(ctx)
	all, err := controlplane.Minors()
	Expect(err).NotTo(HaveOccurred())
	for _, m := range all {
		if strings.HasPrefix(server, "v"+m.Name()+".") {
			is = m
		}
	}
	Expect(is.Version).NotTo(BeEmpty(), "hack/controlplane/minors lacks the version %s", server)
})

func freePort(ctx context.Context) int32 {
	GinkgoHelper()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	address, ok := l.Addr().(*net.TCPAddr)
	Expect(ok).To(BeTrue())
	Expect(l.Close()).To(Succeed())
	return int32(address.Port) //nolint:gosec // a port
}

const name = "idalloc"

// helm returns what an administrator's Helm works with.
func helm() *action.Configuration {
	GinkgoHelper()
	flags, cache, space := genericclioptions.NewConfigFlags(true), GinkgoT().TempDir(), release
	flags.KubeConfig, flags.CacheDir, flags.Namespace = &admin, &cache, &space
	config := action.NewConfiguration()
	Expect(config.Init(flags, release, "secret")).To(Succeed())
	return config
}

// tested is "helm test". It returns what its pod prints.
func tested() string {
	GinkgoHelper()
	test := action.NewReleaseTesting(helm())
	test.Namespace, test.Timeout = release, time.Minute
	path := env.Node.Logs(release, name+"-check", "check")
	before, _ := os.ReadFile(path) //nolint:gosec // below the node's directory
	_, shutdown, err := test.Run(name)
	after, unread := os.ReadFile(path) //nolint:gosec // below the node's directory
	Expect(shutdown()).To(Succeed())
	log := strings.TrimPrefix(string(after), string(before)) // pods of one name share the file
	Expect(err).NotTo(HaveOccurred(), "%s", log)
	Expect(unread).NotTo(HaveOccurred())
	return log
}

// install installs the chart, or upgrades it, with a value of admission, and waits until its controller is available. An address of the pod's own
// is what each of its ports has on a cluster.
func install(ctx context.Context, admission string) {
	GinkgoHelper()
	config := helm()
	chart, err := loader.Load("../../../charts/idalloc")
	Expect(err).NotTo(HaveOccurred())
	values := map[string]any{
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
	if all, err := config.Releases.History(name); err == nil && len(all) > 0 {
		upgrade := action.NewUpgrade(config)
		upgrade.Namespace, upgrade.WaitStrategy = release, kube.HookOnlyStrategy
		_, err = upgrade.RunWithContext(ctx, name, chart, values)
		Expect(err).NotTo(HaveOccurred())
	} else {
		install := action.NewInstall(config)
		install.ReleaseName, install.Namespace, install.WaitStrategy = name, release, kube.HookOnlyStrategy
		_, err = install.RunWithContext(ctx, chart, values)
		Expect(err).NotTo(HaveOccurred())
	}
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
