// Package measure says how good a division of partitions is. Tests and benchmarks compare strategies with it.
package measure

import (
	"cmp"
	"math"
	"slices"

	"github.com/idalloc/idalloc/pkg/placement"
)

// BalanceDegree returns the population standard deviation of the members' numbers of partitions: 0 if all have as many.
// Without members it is 0.
func BalanceDegree(o placement.Owners) float64 {
	if len(o) == 0 {
		return 0
	}
	sum, squares := 0.0, 0.0
	for _, s := range o {
		sum += float64(s.Len())
	}
	mean := sum / float64(len(o))
	for _, s := range o {
		squares += (float64(s.Len()) - mean) * (float64(s.Len()) - mean)
	}
	return math.Sqrt(squares / float64(len(o)))
}

// StickinessOfAll returns the share of all partitions that have the same owner as before. A partition that is new has not.
func StickinessOfAll(before, after placement.Owners, partitions int) float64 {
	if partitions == 0 {
		return 1
	}
	stayed := 0
	for id, s := range before {
		stayed += s.Intersect(after[id]).Len()
	}
	return float64(stayed) / float64(partitions)
}

// Stickiness returns the share of the partitions owned before that have the same owner after. It is 1 if none was owned.
func Stickiness(before, after placement.Owners) float64 {
	owned, stayed := 0, 0
	for id, s := range before {
		owned += s.Len()
		stayed += s.Intersect(after[id]).Len()
	}
	if owned == 0 {
		return 1
	}
	return float64(stayed) / float64(owned)
}

// Moves returns the number of partitions that have an owner after which they did not have before. A partition that had none
// counts as well.
func Moves(before, after placement.Owners) int {
	n := 0
	for id, s := range after {
		n += s.Len() - s.Intersect(before[id]).Len()
	}
	return n
}

// IdealMoves returns the fewest moves that lead from in.Owners to a target in which the counts of the members differ by at most one.
// in.Target does not matter.
func IdealMoves(in placement.Input) int {
	members := slices.Compact(slices.Sorted(slices.Values(in.Members)))
	if len(members) == 0 {
		return 0
	}
	all := placement.Between(0, in.Partitions-1)
	counts := make([]int, 0, len(members))
	for _, id := range members {
		counts = append(counts, in.Owners[id].Intersect(all).Len())
	}
	slices.SortFunc(counts, func(a, b int) int { return cmp.Compare(b, a) }) // the larger shares go to those that have the most
	share, larger := in.Partitions/len(members), in.Partitions%len(members)
	moves := in.Partitions
	for i, n := range counts {
		quota := share
		if i < larger {
			quota++
		}
		moves -= min(quota, n)
	}
	return moves
}
