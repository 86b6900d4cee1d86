package allocation

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

//nolint:gochecknoglobals // Ginkgo's specs share what BeforeSuite made
var (
	env *suite.Suite
	// fileworker is the built example that reads the files and logs what it saw.
	fileworker string
	// linkedworker is the built example that links pkg/context.
	linkedworker string
)

func TestAllocation(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	AddTreeConstructionNodeArgsTransformer(bounded)
	RunSpecs(t, "allocation")
}

// patience is many times what the longest spec needs. A spec that hangs fails by its name, long before the whole suite does.
const patience = 10 * time.Minute

func bounded(nodeType types.NodeType, _ Offset, text string, args []any) (string, []any, []error) {
	if nodeType == types.NodeTypeIt {
		args = append(args, SpecTimeout(patience))
	}
	return text, args, nil
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	env, err = suite.Start(ctx, suite.Options{Log: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	fileworker, err = suite.Build(ctx, GinkgoT().TempDir(), "./examples/fileworker")
	Expect(err).NotTo(HaveOccurred())
	linkedworker, err = suite.Build(ctx, GinkgoT().TempDir(), "./examples/linkedworker")
	Expect(err).NotTo(HaveOccurred())
})
