//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

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

// observe follows all pods with "kubectl idalloc observe". ended ends that, and returns what was found.
func observe(ctx context.Context) (ended func() (found string)) {
	GinkgoHelper()
	var out strings.Builder
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(os.Getenv("E2E_IDALLOC")), "kubectl-"+idalloc), "observe", "-A") //nolint:gosec // what hack/e2e built
	cmd.Stdout, cmd.Stderr = &out, GinkgoWriter
	Expect(cmd.Start()).To(Succeed())
	return func() string {
		GinkgoHelper()
		Expect(cmd.Process.Signal(os.Interrupt)).To(Succeed(), "it has ended by itself")
		_ = cmd.Wait() // it was interrupted
		return out.String()
	}
}

// count counts a fault that was injected or left out.
func (c *chaos) count(injected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if injected {
		c.injected++
	} else {
		c.leftOut++
	}
}

// expectFaults fails a run in which little was broken: it says nothing.
func (c *chaos) expectFaults() {
	GinkgoHelper()
	Expect(c.injected).To(BeNumerically(">", c.leftOut), "faults that were injected, and those that could not be")
}

// report shows how much was broken and what was seen.
func (c *chaos) report() {
	reportf("faults", "%d injected, %d not possible", c.injected, c.leftOut)
	for _, v := range c.workloads {
		counts, all, _ := v.compare() // noOverlap looks at the error
		reportf("overlaps of "+v.label, "%d in %d samples of %d pods; %d if %d force-deleted pods counted",
			len(counts.Violations), counts.Samples, len(counts.Pods), len(all.Violations), len(v.excused))
	}
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
