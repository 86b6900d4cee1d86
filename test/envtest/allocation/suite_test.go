package allocation

import (
	"context"
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
	// testworker is the built program of the tests, which logs what it sees.
	testworker string
	// fileworker is the built example that reads the files. testworker runs it.
	fileworker string
)

func TestAllocation(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	AddTreeConstructionNodeArgsTransformer(bounded)
	RunSpecs(t, "allocation")
}

// nightly is the label of a spec that runs at night only: it takes long, because it waits for time-outs, breaks the control plane or starts
// many pods, or a cheaper one tells most of its story.
const nightly = "nightly"

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
	testworker = built(ctx, "./test/worker")
	fileworker = built(ctx, "./examples/fileworker")
})

// built returns the program of a package.
func built(ctx context.Context, pkg string) string {
	GinkgoHelper()
	program, err := suite.Build(ctx, GinkgoT().TempDir(), pkg)
	Expect(err).NotTo(HaveOccurred())
	return program
}
