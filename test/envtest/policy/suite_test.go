package policy

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/test/envtest/specs"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

var env *suite.Suite //nolint:gochecknoglobals // Ginkgo's specs share what BeforeSuite made

func TestPolicy(t *testing.T) {
	specs.Run(t, "policy", 2*time.Minute, patience)
}

// binding is the file that puts the policy of workloads and pods in force.
const binding = "policy/binding.yaml"

// patience is for one spec.
const patience = 5 * time.Minute

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	env, err = suite.Start(ctx, suite.Options{BoundTokens: true, Log: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	Expect(suite.Install(ctx, env.Client,
		"policy/policy.yaml", "policy/leases.yaml", "policy/leases-binding.yaml", "policy/events.yaml", "policy/events-binding.yaml",
		"policy/clusterrole.yaml", binding,
		"assign/controller.yaml", "assign/controller-binding.yaml", "assign/refusal.yaml", "assign/refusal-binding.yaml",
	)).To(Succeed())
})
