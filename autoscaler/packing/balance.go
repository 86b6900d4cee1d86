package packing

import "slices"

// even divides more load among n pods than they can work off. No pod gets more than a sixteenth above the even share, if such a division is found; otherwise an
// eighth, a quarter and so on. So a small change of the loads moves nothing.
func (l load) even(n int) *bins {
	share := l.share(n)
	for over := share / 16; ; over *= 2 {
		most := min(share+over, max(l.sum, room)) // that much holds everything
		b, pool := l.relieved(n, most)
		if b.place(pool, most, unlimited, ranks.worst) {
			return b
		}
	}
}

// share returns the load of each of n pods if all have the same, except those with one partition that is larger. It is at least one capacity.
func (l load) share(n int) int64 {
	sorted := slices.Sorted(slices.Values(l.sizes))
	rest := l.sum
	for i := len(sorted) - 1; i > 0 && n > 1 && sorted[i] > rest/int64(n); i-- {
		rest -= sorted[i]
		n--
	}
	return max(rest/int64(n)+1, room)
}
