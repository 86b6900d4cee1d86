package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/overlap"
)

// prove compares what the programs logged themselves.
func (s *stage) prove(begin time.Time) error {
	records, err := overlap.Read(s.probes)
	if err != nil {
		return err
	}
	report, err := overlap.Check(records)
	if err != nil {
		return err
	}
	pods := len(s.observer.seen)
	if len(report.Pods) != pods {
		return fmt.Errorf("%d pods ran, but %d of them logged what they saw", pods, len(report.Pods))
	}
	var longest time.Duration
	for _, pod := range report.Pods {
		longest = max(longest, pod.LongestGap)
	}
	s.display.say("Was an id ever held twice? Every program logged what it read, every 5 ms, without",
		"knowing of Kubernetes. By these logs alone, who had which id, and how long at most no pod had it:")
	s.display.say(history(report)...)
	s.display.say("",
		fmt.Sprintf("%s %d samples of %d pods compared (%d ms at most between two of a pod):", tick, report.Samples, pods, longest.Milliseconds()),
		"  no two pods ever had one id at the same moment.",
		fmt.Sprintf("%s idalloc wrote to the Deployment %s for %d pods: one write serves all pods that wait.", tick, times(s.observer.writes.Load()), pods),
		"  The whole story took "+seconds(time.Since(begin))+".")
	return nil
}

// history lists which pods had each id.
func history(report overlap.Report) []string {
	uid := regexp.MustCompile(`/\S+`)
	out := make([]string, 0, len(report.Slots))
	for _, id := range slices.Sorted(maps.Keys(report.Slots)) {
		slot := report.Slots[id]
		line := fmt.Sprintf("  id %d: %s", id, uid.ReplaceAllString(strings.Join(slot.Holders, " then "), ""))
		if len(slot.Holders) > 1 {
			line += fmt.Sprintf("   (free for %d ms)", slot.MaxGap.Milliseconds())
		}
		out = append(out, line)
	}
	return out
}

// changes says in words how the holders of after came from those of before.
func changes(before, after frame) string {
	var kept, fresh, moved []string
	for _, pod := range slices.SortedFunc(maps.Keys(after.holders), func(a, b string) int { return after.holders[a] - after.holders[b] }) {
		id := strconv.Itoa(after.holders[pod])
		switch was, known := before.holders[pod]; {
		case !known:
			fresh = append(fresh, id)
		case was == after.holders[pod]:
			kept = append(kept, id)
		default:
			moved = append(moved, fmt.Sprintf("%d to %s", was, id))
		}
	}
	var parts []string
	for _, part := range []struct {
		what string
		ids  []string
	}{{"new pods have ids", fresh}, {"survivors moved from", moved}, {"nothing changed for", kept}} {
		if len(part.ids) > 0 {
			parts = append(parts, part.what+" "+strings.Join(part.ids, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

func times(n int64) string {
	return cmp.Or(map[int64]string{1: "once", 2: "twice"}[n], fmt.Sprintf("%d times", n))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
