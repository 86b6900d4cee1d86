//go:build e2e

package e2e

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// patience is for one step of a cluster with two slow cores: a few pods end and start.
	patience = 2 * time.Minute
	polling  = 200 * time.Millisecond
	// mainFlow is the label of a spec of what most users do, which is run for every change: each example is applied, has its ids, and loses a
	// pod; rollouts, an undo, a lost node. The other specs are run at night.
	mainFlow = "main"
)

var (
	client kubernetes.Interface //nolint:gochecknoglobals // set once, before the specs
	config *rest.Config         //nolint:gochecknoglobals // the same
	image  string               //nolint:gochecknoglobals // the same
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(polling)
	RunSpecs(t, "idalloc on a real cluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	image = os.Getenv("E2E_IMAGE")
	Expect(image).NotTo(BeEmpty(), "set E2E_IMAGE to an image with /idalloc, /fileworker and /worker that the node has; hack/e2e does")
	Expect(os.Getenv("E2E_IDALLOC")).To(BeAnExistingFile(), "set E2E_IDALLOC to the idalloc command; hack/e2e does")
	var err error
	config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	Expect(err).NotTo(HaveOccurred(), "set KUBECONFIG")
	// The suite asks often; the client's default of 5 requests a second would slow it down.
	config.QPS, config.Burst = 100, 200
	client, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	_, err = client.Discovery().ServerVersion()
	Expect(err).NotTo(HaveOccurred(), "the cluster does not answer")
	keepImages(ctx)
	enforcePolicy(ctx)
}, NodeTimeout(patience))
