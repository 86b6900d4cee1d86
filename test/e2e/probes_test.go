//go:build e2e

package e2e

import (
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/test/overlap"
)

// records returns what the programs logged since a moment of overlap.Now.
func (w *workload) records(since int64) []overlap.Record {
	GinkgoHelper()
	all, err := overlap.Read(w.probes)
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(all, func(r overlap.Record) bool { return r.Before < since })
}

// reportf adds a line to the suite's report, whether the spec fails or not.
func reportf(what, format string, args ...any) {
	AddReportEntry(what, ReportEntryVisibilityAlways, fmt.Sprintf(format, args...))
}
