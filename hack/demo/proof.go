package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/overlap"
)

// prove compares what the workloads logged themselves.
func (s *stage) prove(begin time.Time) error {
	records, err := overlap.Read(s.probes)
	if err != nil {
		return err
	}
	report, err := overlap.Check(records)
	if err != nil {
		return err
	}
	f := s.observer.frame()
	if len(report.Pods) != f.pods {
		return fmt.Errorf("%d pods ran, but %d of them logged what they saw", f.pods, len(report.Pods))
	}
	var longest time.Duration
	for _, pod := range report.Pods {
		longest = max(longest, pod.LongestGap)
	}
	s.display.say("Was an id ever held twice? Every workload logged what it read, every 5 ms, without knowing of Kubernetes.",
		"Who had which id, by these logs alone, and how long at most nobody had it in between:")
	s.display.say(history(report)...)
	s.display.say("",
		fmt.Sprintf("%s %s samples of %d pods compared (%s at most between two of a pod): no two pods ever had one id at the same moment.",
			tick, thousands(report.Samples), len(report.Pods), milliseconds(longest)),
		fmt.Sprintf("%s idalloc wrote to the Deployment %s for %d pods: one write serves all pods that wait. The whole story took %s.",
			tick, times(f.writes), f.pods, seconds(time.Since(begin))))
	return nil
}

// history lists who had each id.
func history(report overlap.Report) []string {
	out := make([]string, 0, len(report.Slots))
	for _, id := range slices.Sorted(maps.Keys(report.Slots)) {
		slot := report.Slots[id]
		holders := slices.Clone(slot.Holders)
		for i, next := range holders[1:] {
			holders[i+1] = next[strings.LastIndexByte(next, '-')+1:]
		}
		line := fmt.Sprintf("  id %d: %s", id, strings.Join(holders, " then "))
		if len(slot.Holders) > 1 {
			line += fmt.Sprintf("   (free for %s)", milliseconds(slot.MaxGap))
		}
		out = append(out, line)
	}
	return out
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(cmp.Or(d.Milliseconds(), 1), 10) + " ms"
}

// thousands writes 12345 as 12,345.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
