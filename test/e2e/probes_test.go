//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"time"

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

// expectUninterrupted: since then, each of these pods showed its id under one token in every sample.
func (w *workload) expectUninterrupted(h holders, since int64) {
	GinkgoHelper()
	tokens, longest, last := map[string]int64{}, time.Duration(0), map[string]int64{}
	for _, r := range w.records(since) {
		id := h.id(r.Pod)
		if id == overlap.None {
			continue
		}
		Expect(r.ID).To(Equal(id), "%s was interrupted: %s", r.Pod, r)
		if before, seen := last[r.Pod]; seen {
			Expect(r.Token).To(Equal(tokens[r.Pod]), "%s took its id again: %s", r.Pod, r)
			longest = max(longest, time.Duration(r.Before-before))
		}
		tokens[r.Pod], last[r.Pod] = r.Token, r.Before
	}
	Expect(tokens).To(HaveLen(len(h)), "pods that logged something")
	reportf("longest time between two samples of a holder", "%s", longest.Round(time.Millisecond))
}

// reportf adds a line to the suite's report, whether the spec fails or not.
func reportf(what, format string, args ...any) {
	AddReportEntry(what, ReportEntryVisibilityAlways, fmt.Sprintf(format, args...))
}
