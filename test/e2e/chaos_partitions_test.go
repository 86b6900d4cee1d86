//go:build e2e

package e2e

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
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
