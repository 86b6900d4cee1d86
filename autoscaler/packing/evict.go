package packing

import (
	"math"
	"math/bits"
	"slices"
)

// few is the maximum number of partitions for which all sets are tried.
const few = 10

// relieve divides the partitions of a pod into what stays and what leaves, so that the pod holds at most most, or one partition alone. The load that leaves is
// the least possible, or nearly if there are many partitions.
func (l load) relieve(list []int, most int64) (stay, leave []int) {
	var fit, large []int
	for _, p := range list {
		if l.sizes[p] > most {
			large = append(large, p)
		} else {
			fit = append(fit, p)
		}
	}
	leaving := int64(0)
	if need := l.total(fit) - most; need > 0 {
		leaving, leave = l.least(slices.Clone(fit), need)
	}
	l.decreasing(large)
	if len(large) > 0 && l.total(fit) <= l.sizes[large[0]]+leaving {
		return large[:1], slices.Concat(fit, large[1:])
	}
	return without(fit, leave), slices.Concat(leave, large)
}

// least returns partitions of the list whose sum is at least need, and that sum. The sum is the least possible, or nearly if there are many partitions. The
// whole list must be enough. It may sort the list.
func (l load) least(list []int, need int64) (sum int64, leave []int) {
	if len(list) <= few {
		return l.leastOfAll(list, need)
	}
	return l.leastFound(list, need)
}

// without returns the elements of list that are not in leave.
func without(list, leave []int) []int {
	leaving := make(map[int]bool, len(leave))
	for _, p := range leave {
		leaving[p] = true
	}
	rest := make([]int, 0, len(list))
	for _, p := range list {
		if !leaving[p] {
			rest = append(rest, p)
		}
	}
	return rest
}

// leastOfAll tries all sets. Among sets of equal size, it prefers one with the fewest partitions.
func (l load) leastOfAll(list []int, need int64) (sum int64, leave []int) {
	var sums [1 << few]int64
	best := 0
	sum = math.MaxInt64
	for set := 1; set < 1<<len(list); set++ {
		s := sums[set&(set-1)] + l.sizes[list[bits.TrailingZeros(uint(set))]]
		sums[set] = s
		if s >= need && (s < sum || s == sum && bits.OnesCount(uint(set)) < bits.OnesCount(uint(best))) {
			best, sum = set, s
		}
	}
	for i, p := range list {
		if best>>i&1 == 1 {
			leave = append(leave, p)
		}
	}
	return sum, leave
}

// leastFound goes through the partitions, the largest first. It takes a partition if the sum then is still less than need. Any other partition would complete
// the set; of these sets it returns the one with the least sum.
func (l load) leastFound(list []int, need int64) (sum int64, leave []int) {
	l.decreasing(list)
	var taken []int
	last, before, so := none, 0, int64(0)
	for _, p := range list {
		switch s := so + l.sizes[p]; {
		case s < need:
			taken = append(taken, p)
			so = s
		case last == none || s < sum:
			sum, last, before = s, p, len(taken)
		}
	}
	return sum, append(taken[:before], last)
}
