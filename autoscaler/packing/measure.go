package packing

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/placement"
)

// LowerBound returns a number of pods below which no packing is possible. A packing may need more. Max is ignored.
func LowerBound(in Input) int { return max(loadOf(in).bound(), in.Min, 0) }

// bound is the bound L2 of Martello and Toth. Partitions that are larger than half a pod need one pod each. The others need their sum, less what is free in
// these pods. But some of these pods have no room for a partition as large as the smallest one counted. So the bound is the best over all such sizes.
func (l load) bound() int {
	sizes := slices.Sorted(slices.Values(l.sizes))
	slices.Reverse(sizes)
	half := 0
	for half < len(sizes) && 2*sizes[half] > room {
		half++
	}
	best := max(half, min(1, len(sizes)))
	alone := half // number of large ones without room
	small, free := int64(0), int64(0)
	for i := half; i <= len(sizes); i++ {
		least := int64(0)
		if i < len(sizes) {
			least = sizes[i]
		}
		small += least
		for alone > 0 && sizes[alone-1]+least <= room {
			alone--
			free += room - sizes[alone]
		}
		if lacking := small - free; lacking > 0 {
			best = max(best, half+int((lacking+room-1)/room))
		}
	}
	return best
}

// Moved returns the speed of the partitions whose owner changes from before to after. Partitions without an owner before do not count. Divided by the capacity
// of a pod, it is the rebalance cost R of arXiv 2206.11170.
func Moved(speeds []float64, before, after placement.Owners) float64 {
	sum := 0.0
	for _, id := range before.IDs() {
		for p := range before[id].Minus(after[id]).All() {
			if p < len(speeds) {
				sum += speeds[p]
			}
		}
	}
	return sum
}
