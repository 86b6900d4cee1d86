// Package specs is what the Ginkgo suites on the local control plane have in common.
package specs

import (
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

// Run runs the specs of a package. Eventually waits for up to eventually. A spec may take up to patience, which is many times what the
// longest one needs: one that hangs fails by its name, long before the whole suite does. A spec may set its own SpecTimeout.
func Run(t *testing.T, name string, eventually, patience time.Duration) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	gomega.SetDefaultEventuallyTimeout(eventually)
	gomega.SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	ginkgo.AddTreeConstructionNodeArgsTransformer(func(nodeType types.NodeType, _ ginkgo.Offset, text string, args []any) (string, []any, []error) {
		if nodeType == types.NodeTypeIt {
			args = append([]any{ginkgo.SpecTimeout(patience)}, args...) // the last one counts
		}
		return text, args, nil
	})
	ginkgo.RunSpecs(t, name)
}

// Manifest reads a file of this repository. Unknown fields are errors.
func Manifest[T runtime.Object](path string) T {
	ginkgo.GinkgoHelper()
	object, err := suite.Manifest[T](path)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return object
}
