package overlap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// String returns the report as a few lines for the log of a test.
func (r Report) String() string {
	var b strings.Builder
	var longest time.Duration
	for _, p := range r.Pods {
		longest = max(longest, p.LongestGap)
	}
	fmt.Fprintf(&b, "%d samples of %d pods, at most %s apart: %d violations\n", r.Samples, len(r.Pods), longest.Round(time.Millisecond), len(r.Violations))
	for _, id := range slices.Sorted(maps.Keys(r.Slots)) {
		s := r.Slots[id]
		fmt.Fprintf(&b, "id %d: %d holders", id, len(s.Holders))
		if len(s.Holders) > 1 {
			fmt.Fprintf(&b, ", free between them for %s (median), %s (max)", s.MedianGap.Round(time.Millisecond), s.MaxGap.Round(time.Millisecond))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
