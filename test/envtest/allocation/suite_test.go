package allocation

import (
	"context"
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
	// testworker is the built program of the tests, which logs what it sees.
	testworker string
	// fileworker is the built example that reads the files. testworker runs it.
	fileworker string
)

func TestAllocation(t *testing.T) {
	specs.Run(t, "allocation", 3*time.Minute, patience)
}

// nightly is the label of a spec that runs at night only: it takes long, because it waits for time-outs, breaks the control plane or starts
// many pods, or a cheaper one tells most of its story.
const nightly = "nightly"

// patience is for one spec.
const patience = 10 * time.Minute

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	breaks := failing != ""
	env, err = suite.Start(ctx, suite.Options{Log: GinkgoLogr, SkipBinary: breaks, Controller: breaks, BoundTokens: breaks})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	if breaks {
		env.Binary = failing
	}
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
