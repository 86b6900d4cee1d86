package autoscale

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

var env *suite.Suite //nolint:gochecknoglobals // Ginkgo's specs share what BeforeSuite made

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
	env, err = suite.Start(ctx, suite.Options{SkipBinary: true, Images: map[string]string{image: program}, BoundTokens: true, Log: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
})
