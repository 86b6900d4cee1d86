package placement

import (
	"iter"
	"math"
	"slices"
	"sort"
)

// MaxCount is the largest number of partitions of a workload. A row of that many always fits into the owner's annotations. Sets and strategies also work
// beyond it.
const MaxCount = 4096

// Set is an immutable set of partitions. The zero value is empty. Its size in memory depends on the number of its ranges.
type Set struct {
	spans []span // ascending, with a gap between each two; nil if the set is empty
	count int
}

// span is the range of partitions from first to last, both included.
type span struct{ first, last int32 }

// highest is the largest number of a partition. One more must not overflow a span.
const highest = math.MaxInt32 - 1

// spanOf returns the span of numbers in [0, highest].
func spanOf(first, last int) span {
	return span{int32(first), int32(last)} //nolint:gosec // see above
}

func (s span) size() int { return int(s.last) - int(s.first) + 1 }

// newSet returns the set of spans, which it keeps. They are ascending and have gaps between them.
func newSet(spans []span) Set {
	if len(spans) == 0 {
		return Set{}
	}
	s := Set{spans: spans}
	for _, r := range spans {
		s.count += r.size()
	}
	return s
}

// Of returns the set of the given partitions. They may be in any order and repeat. Numbers below 0 or above 2^31 - 2 are omitted.
func Of(partitions ...int) Set {
	spans := make([]span, 0, len(partitions))
	for _, p := range partitions {
		if p >= 0 && p <= highest {
			spans = append(spans, spanOf(p, p))
		}
	}
	return newSet(merged(spans))
}

// Between returns the set of the partitions from first to last, both included. It is empty if last is less than first. Numbers below 0 or above 2^31 - 2
// are omitted.
func Between(first, last int) Set {
	first, last = max(first, 0), min(last, highest)
	if last < first {
		return Set{}
	}
	return newSet([]span{spanOf(first, last)})
}

// merged sorts spans in place and joins those that overlap or touch.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return int(a.first) - int(b.first) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.first-1 <= out[n-1].last {
			out[n-1].last = max(out[n-1].last, s.last)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// Len returns the number of partitions.
func (s Set) Len() int { return s.count }

// Empty reports whether the set is empty.
func (s Set) Empty() bool { return s.count == 0 }

// Contains reports whether the partition is in the set.
func (s Set) Contains(partition int) bool {
	i := sort.Search(len(s.spans), func(i int) bool { return int(s.spans[i].last) >= partition })
	return i < len(s.spans) && int(s.spans[i].first) <= partition
}

// Equal reports whether both sets have the same partitions.
func (s Set) Equal(t Set) bool { return slices.Equal(s.spans, t.spans) }

// Subset reports whether each partition of s is also in t.
func (s Set) Subset(t Set) bool {
	i := 0
	for _, r := range s.spans {
		for i < len(t.spans) && t.spans[i].last < r.first {
			i++
		}
		if i == len(t.spans) || t.spans[i].first > r.first || t.spans[i].last < r.last {
			return false
		}
	}
	return true
}

// All returns the partitions in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, r := range s.spans {
			for p := r.first; p <= r.last; p++ {
				if !yield(int(p)) {
					return
				}
			}
		}
	}
}

// Ranges returns the first and the last partition of each range, in ascending order. There are as few ranges as possible.
func (s Set) Ranges() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for _, r := range s.spans {
			if !yield(int(r.first), int(r.last)) {
				return
			}
		}
	}
}
