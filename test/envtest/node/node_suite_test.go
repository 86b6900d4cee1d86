package node_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/node"
)

const (
	patience = 90 * time.Second
	interval = 50 * time.Millisecond
)

//nolint:gochecknoglobals // set by BeforeSuite and BeforeEach, as Ginkgo has it
var (
	cp        *controlplane.ControlPlane
	worker    *node.Node
	client    kubernetes.Interface
	namespace string
)

func TestNode(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(interval)
	RunSpecs(t, "process node")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	cp, err = controlplane.Start(ctx, controlplane.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cp.Stop()).To(Succeed()) })
	client, err = kubernetes.NewForConfig(cp.Config())
	Expect(err).NotTo(HaveOccurred())
	worker = startNode(ctx)
	DeferCleanup(func() { worker.Stop() })
})

func startNode(ctx SpecContext) *node.Node {
	GinkgoHelper()
	n, err := node.Start(ctx, cp.Config(), node.Options{
		ProbePeriod: 100 * time.Millisecond,
		MaxBackOff:  200 * time.Millisecond,
		Log:         GinkgoLogr,
	})
	Expect(err).NotTo(HaveOccurred())
	return n
}

var _ = BeforeEach(func(ctx SpecContext) {
	created, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	namespace = created.Name
	Eventually(func(ctx SpecContext) error {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	}).WithContext(ctx).Should(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		now := int64(0)
		Expect(client.CoreV1().Namespaces().Delete(ctx, created.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
	})
})
