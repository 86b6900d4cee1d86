//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/test/history"
	"github.com/idalloc/idalloc/test/overlap"
)

// excuse leaves out what a pod shows from now on.
func (v *victim) excuse(pod string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, is := v.excused[pod]; !is {
		v.excused[pod] = overlap.Now()
	}
}

// counted leaves out what pods may have shown after they were force-deleted.
func counted(records []overlap.Record, excused map[string]int64) []overlap.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r overlap.Record) bool {
		pod, _, _ := strings.Cut(r.Pod, "#") // what follows is a partition
		since, is := excused[pod]
		return is && r.After >= since
	})
}

// compare checks the logs so far: of the pods that count, and of all.
func (v *victim) compare() (counts, all overlap.Report, err error) {
	records, err := overlap.Read(v.probes)
	if err != nil {
		return counts, all, err
	}
	v.mu.Lock()
	excused := maps.Clone(v.excused)
	v.mu.Unlock()
	all, _ = overlap.Check(records) // who is excused may do that
	counts, err = overlap.Check(counted(records, excused))
	return counts, all, err
}

// noOverlap compares the logs of each workload so far.
func (c *chaos) noOverlap() {
	GinkgoHelper()
	for _, v := range c.workloads {
		counts, _, err := v.compare()
		GinkgoWriter.Printf("\noverlap check of %s: %s\n", v.label, counts)
		Expect(err).NotTo(HaveOccurred(), "two pods of the workload %q had one id, or one partition", v.label)
	}
}

// judge puts what counts as a violation into the run's summary; the logs alone show more.
func (c *chaos) judge(s *history.Summary) {
	for _, v := range c.workloads {
		counts, all, _ := v.compare() // noOverlap looks at the error
		for _, violation := range counts.Violations {
			s.Violations = append(s.Violations, v.label+": "+violation)
		}
		if more := len(all.Violations) - len(counts.Violations); more > 0 {
			s.Notes = append(s.Notes, fmt.Sprintf("%s: %d more of pods that were force-deleted, which do not count outside strict mode from then on.", v.label, more))
		}
	}
}

// count counts a fault that was injected or left out.
func (c *chaos) count(kind string, injected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tally[kind]
	if injected {
		t.injected++
	} else {
		t.leftOut++
	}
	c.tally[kind] = t
}

func (c *chaos) total() (t tally) {
	for _, one := range c.tally {
		t.injected += one.injected
		t.leftOut += one.leftOut
	}
	return t
}

// expectFaults fails a run in which little was broken: it says nothing.
func (c *chaos) expectFaults() {
	GinkgoHelper()
	t := c.total()
	Expect(t.injected).To(BeNumerically(">", t.leftOut), "faults that were injected, and those that could not be")
}

// report shows what was broken and what was seen.
func (c *chaos) report() {
	reportf("faults", "%s", table("kind\tinjected\tnot possible", func(row func(format string, args ...any)) {
		for _, f := range c.faults() {
			row("%s\t%d\t%d", f.kind, c.tally[f.kind].injected, c.tally[f.kind].leftOut)
		}
		row("total\t%d\t%d", c.total().injected, c.total().leftOut)
	}))
	reportf("overlaps", "%s", table("workload\tpods\tsamples\toverlaps\tforce-deleted pods that do not count\toverlaps if they did", func(row func(format string, args ...any)) {
		for _, v := range c.workloads {
			counts, all, _ := v.compare() // noOverlap looks at the error
			row("%s\t%d\t%d\t%d\t%d\t%d", v.label, len(counts.Pods), counts.Samples, len(counts.Violations), len(v.excused), len(all.Violations))
		}
	}))
}

func table(head string, rows func(row func(format string, args ...any))) string {
	const gap = 2
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, gap, ' ', 0)
	write := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) } //nolint:errcheck // into memory
	write("\n%s", head)
	rows(write)
	_ = w.Flush() // into memory
	return text.String()
}

var _ = Describe("Chaos' check", func() {
	const deleted = 150
	// shows are samples of a pod every 10 ns.
	shows := func(pod string, from, to, token int64) (all []overlap.Record) {
		for t := from; t <= to; t += 10 {
			all = append(all, overlap.Record{Before: t, After: t + 1, Pod: pod, ID: 3, Count: 4, Token: token})
		}
		return all
	}
	DescribeTable("of what pods showed", func(first, second []overlap.Record, violations int) {
		report, _ := overlap.Check(counted(slices.Concat(first, second), map[string]int64{"gone": deleted}))
		Expect(report.Violations).To(HaveLen(violations))
	},
		Entry("finds two pods with one id", shows("a", 0, 200, 1), shows("b", 100, 300, 2), 1),
		Entry("finds a later holder without a higher token", shows("a", 0, 100, 2), shows("b", 110, 300, 2), 1),
		Entry("does not count a force-deleted pod that keeps working", shows("gone", 0, 200, 1), shows("b", 160, 300, 2), 0),
		Entry("counts it before it was deleted", shows("gone", 0, 200, 1), shows("b", 100, 300, 2), 1),
		Entry("does not count its partitions", shows("gone#3", 0, 200, 1), shows("b#3", 160, 300, 2), 0),
		Entry("does not count one that comes back", shows("gone", 160, 200, 1), shows("b", 100, 300, 2), 0),
	)
})
