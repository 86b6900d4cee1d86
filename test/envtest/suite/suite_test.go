package suite_test

import (
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

var env *suite.Suite //nolint:gochecknoglobals // set by BeforeSuite, as Ginkgo has it

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "suite")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	env, err = suite.Start(ctx, suite.Options{SkipBinary: true, Log: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
})

// namespace makes a new namespace for each spec.
func namespace(ctx SpecContext, rules ...rbacv1.PolicyRule) *suite.Namespace {
	GinkgoHelper()
	ns, err := env.NewNamespace(ctx, rules...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(ns.Delete)
	return ns
}

func ready(ctx SpecContext, ns *suite.Namespace, name string) func() (int, error) {
	return func() (int, error) {
		pods, err := ns.ReadyPods(ctx, name)
		return len(pods), err
	}
}

var _ = Describe("a namespace", func() {
	It("gives pods their service account's permissions and no more", func(ctx SpecContext) {
		ns := namespace(ctx)
		Expect(ns.Create(ctx, suite.Deployment("worker", 1,
			suite.PodSpec(suite.Container("main", "/bin/sh", "-c", "echo $KUBECONFIG; exec sleep 100000"))))).To(Succeed())
		Eventually(ready(ctx, ns, "worker")).Should(Equal(1))
		pods, err := ns.Pods(ctx, "worker")
		Expect(err).NotTo(HaveOccurred())
		var path string
		Eventually(func() (string, error) {
			content, err := os.ReadFile(env.Node.Logs(ns.Name, pods[0].Name, "main"))
			path = strings.TrimSpace(string(content))
			return path, err
		}).ShouldNot(BeEmpty())

		config, err := clientcmd.BuildConfigFromFlags("", path)
		Expect(err).NotTo(HaveOccurred())
		client, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		_, err = client.CoreV1().Pods(ns.Name).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = client.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))
	})

	It("takes other rules", func(ctx SpecContext) {
		ns := namespace(ctx, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}})
		config, err := ns.Config(ctx)
		Expect(err).NotTo(HaveOccurred())
		client, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		_, err = client.CoreV1().Pods(ns.Name).Get(ctx, "none", metav1.GetOptions{})
		Expect(err).To(Satisfy(apierrors.IsNotFound))
		_, err = client.CoreV1().Pods(ns.Name).List(ctx, metav1.ListOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))
	})

	It("runs and scales every kind of workload", func(ctx SpecContext) {
		ns := namespace(ctx)
		spec := suite.PodSpec(suite.Container("main", "/bin/sh", "-c", "test -f /ids/up && exec sleep 100000"))
		spec.InitContainers = append(spec.InitContainers, suite.Container("init", "touch", "/ids/up"))
		suite.Share(spec, "/ids")
		Expect(ns.Create(ctx,
			suite.Deployment("deployment", 2, spec), suite.StatefulSet("statefulset", 2, spec),
			suite.ReplicaSet("replicaset", 2, spec), suite.Job("job", 2, spec), suite.Pod("pod", spec),
		)).To(Succeed())
		for _, name := range []string{"deployment", "statefulset", "replicaset", "job"} {
			Eventually(ready(ctx, ns, name)).Should(Equal(2), name)
		}
		Eventually(ready(ctx, ns, "pod")).Should(Equal(1))
		for _, kind := range []string{"Deployment", "StatefulSet", "ReplicaSet", "Job"} {
			name := strings.ToLower(kind)
			Expect(ns.Scale(ctx, kind, name, 1)).To(Succeed())
			Eventually(ready(ctx, ns, name)).Should(Equal(1), name)
		}
	})
})
