package packing

import (
	"cmp"
	"math"
	"slices"
)

// Sums of floats depend on their order, but whether a pod is full must not. So loads are whole numbers here.
const (
	// full is the capacity of a pod.
	full = 1 << 36
	// room is the limit for the load of a pod. It is a billionth above full, so that rounding does not keep ten tenths out.
	room = full + full>>30
)

// none is the pod of a partition that no pod owns.
const none = -1

// load is what Pack has to pack.
type load struct {
	sizes []int64 // of each partition, with its margin
	owner []int   // of each partition: the id that owns it, or none
	sum   int64
}

func loadOf(in Input) load {
	l := load{sizes: make([]int64, len(in.Speeds)), owner: make([]int, len(in.Speeds))}
	for p := range in.Speeds {
		l.sizes[p] = in.Size(p)
		l.owner[p] = none
		l.sum += l.sizes[p]
	}
	ids := in.Owners.IDs()
	for _, id := range slices.Backward(ids) { // the lowest last, because it takes precedence
		if id < 0 || id >= max(len(in.Speeds), in.Min) {
			continue // more pods than that are never needed
		}
		for first, last := range in.Owners[id].Ranges() {
			for p := first; p <= min(last, len(l.owner)-1); p++ {
				l.owner[p] = id
			}
		}
	}
	return l
}

// Fits reports whether one pod works off partitions with this total size.
func Fits(size int64) bool { return size <= room }

// Size returns the load of a partition, with its margin, as a whole number.
func (in Input) Size(p int) int64 {
	largest := max(math.MaxInt64/16/int64(len(in.Speeds)+1), 2*full) // so that no sum overflows
	return sizeOf((cleaned(in.Speeds[p])+cleaned(in.Margin))/cleaned(in.Capacity), largest)
}

// cleaned returns f, or 0 if f is negative or not a number.
func cleaned(f float64) float64 {
	if f > 0 {
		return f
	}
	return 0
}

// sizeOf returns the size of a part of a pod's capacity.
func sizeOf(part float64, largest int64) int64 {
	switch size := math.Round(part * full); {
	case math.IsNaN(size):
		return 0
	case size < float64(largest):
		return int64(size)
	}
	return largest
}

// used returns one more than the highest id that owns a partition.
func (l load) used() int {
	n := 0
	for _, id := range l.owner {
		n = max(n, id+1)
	}
	return n
}

// decreasing sorts partitions by size, the largest first. Of two with the same size, the lower number comes first.
func (l load) decreasing(partitions []int) { slices.SortFunc(partitions, l.bySize) }

func (l load) bySize(p, q int) int { return cmp.Or(cmp.Compare(l.sizes[q], l.sizes[p]), p-q) }

// oversized returns the partitions that are larger than a pod.
func (l load) oversized() []int {
	var large []int
	for p, size := range l.sizes {
		if size > room {
			large = append(large, p)
		}
	}
	return large
}

// total returns the total size of partitions.
func (l load) total(partitions []int) int64 {
	sum := int64(0)
	for _, p := range partitions {
		sum += l.sizes[p]
	}
	return sum
}
