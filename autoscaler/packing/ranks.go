package packing

import (
	"cmp"
	"slices"
)

// ranks are pods, the lightest first. Of pods with equal load, the one with fewer partitions comes first, then the lower id.
type ranks []rank

type rank struct {
	load      int64
	count, id int32
}

func rankOf(id int, load int64, count int) rank {
	return rank{load, int32(count), int32(id)} //nolint:gosec // numbers of partitions and of pods, which are int32
}

func compare(a, b rank) int {
	return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.count, b.count), cmp.Compare(a.id, b.id))
}

func (r ranks) find(n rank) int {
	i, _ := slices.BinarySearchFunc(r, n, compare)
	return i
}

func (r *ranks) add(n rank) { *r = slices.Insert(*r, r.find(n), n) }

func (r *ranks) remove(n rank) {
	i := r.find(n)
	*r = slices.Delete(*r, i, i+1)
}

// change replaces a rank. Only the ranks between its old and its new place shift.
func (r ranks) change(from, to rank) {
	i, j := r.find(from), r.find(to)
	if j > i {
		j--
		copy(r[i:j], r[i+1:j+1])
	} else {
		copy(r[j+1:i+1], r[j:i])
	}
	r[j] = to
}

// worst returns the lightest pod, if size fits into it.
func (r ranks) worst(size, most int64) (id int, ok bool) {
	if len(r) == 0 || r[0].count > 0 && r[0].load+size > most {
		return none, false
	}
	return int(r[0].id), true
}

// best returns the fullest pod into which size fits.
func (r ranks) best(size, most int64) (id int, ok bool) {
	i := r.find(rank{load: most - size + 1})
	if i == 0 {
		return r.worst(size, most) // an empty pod takes a partition of any size
	}
	return int(r[r.find(rank{load: r[i-1].load})].id), true
}
