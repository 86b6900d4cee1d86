package envtest

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/test/envtest/specs"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

//nolint:gochecknoglobals // Ginkgo's specs share what BeforeSuite made
var (
	env *suite.Suite
	// autoscaler is the built command.
	autoscaler string
)

func TestAutoscale(t *testing.T) {
	specs.Run(t, "autoscale", 3*time.Minute, patience)
}

// patience is for one spec.
const patience = 10 * time.Minute

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
	Expect(suite.Install(ctx, env.Client, "policy/policy.yaml", "policy/binding.yaml")).To(Succeed())
})
