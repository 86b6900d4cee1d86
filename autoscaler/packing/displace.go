package packing

import "slices"

// scanned is the number of pods that are searched for room, the lightest first.
const scanned = 256

// finder is a method of ranks that finds a pod for a size.
type finder func(r ranks, size, most int64) (id int, ok bool)

// place puts each partition of the pool, the largest first, into the pod that find returns. If there is no room, smaller partitions of one pod make room and
// are placed in their turn, with a total load of at most budget. It returns false if that fails.
func (b *bins) place(pool []int, most, budget int64, find finder) bool {
	for tries := 2*len(b.lists) + 32; len(pool) > 0; {
		p := pool[0]
		pool = pool[1:]
		if id, ok := find(b.ranks, b.sizes[p], most); ok {
			b.put(p, id)
			continue
		}
		id, leave := b.cheapest(b.sizes[p], most, budget)
		if tries--; id == none || tries < 0 {
			return false
		}
		b.keep(without(b.lists[id], leave), id)
		b.put(p, id)
		budget -= b.total(leave)
		for _, q := range leave {
			i, _ := slices.BinarySearchFunc(pool, q, b.bySize)
			pool = slices.Insert(pool, i, q)
		}
	}
	return true
}

// cheapest returns the pod in which the least load, at most budget, must make room for a size. leave are the partitions that must leave it.
func (b *bins) cheapest(size, most, budget int64) (id int, leave []int) {
	id = none
	for _, r := range b.ranks[:min(scanned, len(b.ranks))] {
		need := r.load - max(most-size, 0) // what is larger than most fits only into an empty pod
		if need > budget {
			break // the heavier ones need even more
		}
		smaller := b.smaller(b.lists[r.id], size)
		if size > most && len(smaller) < len(b.lists[r.id]) || need > b.total(smaller) {
			continue
		}
		sum, least := r.load, smaller
		if size <= most {
			sum, least = b.least(smaller, need)
		}
		if sum <= budget {
			id, leave, budget = int(r.id), least, sum-1
		}
	}
	return id, leave
}

// smaller returns those partitions of the list that are smaller than size.
func (l load) smaller(list []int, size int64) []int {
	smaller := make([]int, 0, len(list))
	for _, p := range list {
		if l.sizes[p] < size {
			smaller = append(smaller, p)
		}
	}
	return smaller
}
