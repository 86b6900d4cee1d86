package envtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

//nolint:gochecknoglobals // Ginkgo's specs share what BeforeSuite made
var (
	env *suite.Suite
	// autoscaler is the built command.
	autoscaler string
)

func TestAutoscale(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	AddTreeConstructionNodeArgsTransformer(bounded)
	RunSpecs(t, "autoscale")
}

// patience is many times what the longest spec needs. A spec that hangs fails by its name, long before the whole suite does.
const patience = 10 * time.Minute

func bounded(nodeType types.NodeType, _ Offset, text string, args []any) (string, []any, []error) {
	if nodeType == types.NodeTypeIt {
		args = append(args, SpecTimeout(patience))
	}
	return text, args, nil
}

// image is the name under which pods run the example program.
const image = "partitionworker"

var _ = BeforeSuite(func(ctx SpecContext) {
	program, err := suite.Build(ctx, GinkgoT().TempDir(), "./examples/partitionworker")
	Expect(err).NotTo(HaveOccurred())
	autoscaler, err = suite.Build(ctx, GinkgoT().TempDir(), "./autoscaler/cmd/idalloc-autoscaler")
	Expect(err).NotTo(HaveOccurred())
	env, err = suite.Start(ctx, suite.Options{SkipBinary: true, Images: map[string]string{image: program}, BoundTokens: true, Log: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	// The policy is in force for all specs: what the autoscaler writes has to pass it.
	options := metav1.CreateOptions{}
	_, err = env.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, manifest[*admissionv1.ValidatingAdmissionPolicy]("config", "policy", "policy.yaml"), options)
	Expect(err).NotTo(HaveOccurred())
	_, err = env.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, manifest[*admissionv1.ValidatingAdmissionPolicyBinding]("config", "policy", "binding.yaml"), options)
	Expect(err).NotTo(HaveOccurred())
})

// manifest reads a file of this repository. Unknown fields are errors.
func manifest[T runtime.Object](path ...string) T {
	GinkgoHelper()
	root, err := controlplane.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	Expect(err).NotTo(HaveOccurred())
	object, _, err := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode(content, nil, nil)
	Expect(err).NotTo(HaveOccurred())
	typed, ok := object.(T)
	Expect(ok).To(BeTrue(), "%v: %T", path, object)
	return typed
}
