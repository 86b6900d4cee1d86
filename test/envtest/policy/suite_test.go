package policy

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

var env *suite.Suite //nolint:gochecknoglobals // Ginkgo's specs share what BeforeSuite made

func TestPolicy(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	AddTreeConstructionNodeArgsTransformer(bounded)
	RunSpecs(t, "policy")
}

// patience is many times what the longest spec needs. A spec that hangs fails by its name, long before the whole suite does.
const patience = 5 * time.Minute

func bounded(nodeType types.NodeType, _ Offset, text string, args []any) (string, []any, []error) {
	if nodeType == types.NodeTypeIt {
		args = append(args, SpecTimeout(patience))
	}
	return text, args, nil
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	env, err = suite.Start(ctx, suite.Options{BoundTokens: true, Log: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	install(ctx)
})
