//go:build e2e

package e2e

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/overlap"
)

// partitionFaults are for the workloads with partitions.
func partitionFaults() []fault {
	return []fault{
		{kind: "partitions wished otherwise", weight: 4, only: dividing, do: changeWishes},
	}
}

// dividing: the workload has partitions.
func dividing(v *victim) bool { return v.divides > 0 }

// changeWishes changes what the user wants of partitions. That is no foreign write: these annotations are the user's.
func changeWishes(ctx context.Context, d draw) (string, func(context.Context) error, error) {
	number := d.number
	pick := func(values ...string) string {
		drawn := values[number%len(values)]
		number /= len(values)
		return drawn
	}
	wishes := map[string]string{
		assignment.PartitionCountKey:         pick(strconv.Itoa(fewest), strconv.Itoa(chaosPartitions), strconv.Itoa(2*chaosPartitions)),
		assignment.PartitionStrategyKey:      pick("sticky", "range", "primary"),
		assignment.PartitionFailoverAfterKey: pick("1s", failoverAfter, "never"),
	}
	_, err := d.on.wish(ctx, wishes)
	return strings.Join(slices.Sorted(maps.Values(wishes)), " "), nil, err
}

// wish sets annotations of the user's.
func (w *workload) wish(ctx context.Context, wishes map[string]string) (string, error) {
	pairs := make([]string, 0, len(wishes))
	for _, key := range slices.Sorted(maps.Keys(wishes)) {
		pairs = append(pairs, key+"="+wishes[key])
	}
	return w.kubectl(ctx, append([]string{"annotate", "deployment", name, "--overwrite"}, pairs...)...)
}

// fewest is the lowest number of partitions that is wished for: what is below is there all the time.
const fewest = chaosPartitions / 2

// gaps says how often partitions moved that were there all the time, and for how long nobody worked on them.
func (c *chaos) gaps(row func(format string, args ...any)) {
	for _, v := range slices.DeleteFunc(slices.Clone(c.workloads), func(v *victim) bool { return v.divides == 0 }) {
		counts, _, _ := v.compare() // noOverlap looks at the error
		moves := 0
		medians, longest := make([]time.Duration, 0, len(counts.Slots)), time.Duration(0)
		for number, s := range counts.Slots {
			if number >= fewest {
				continue
			}
			moves += len(s.Holders) - 1
			medians, longest = append(medians, s.MedianGap), max(longest, s.MaxGap)
		}
		present := slices.DeleteFunc(v.records(0), func(r overlap.Record) bool { return r.ID >= fewest })
		slices.Sort(medians)
		if len(medians) == 0 {
			continue
		}
		row("%s\t%d\t%s\t%s\t%s", v.label, moves, medians[len(medians)/2].Round(time.Millisecond), longest.Round(time.Millisecond), describeAbsences(absences(present)))
	}
}
