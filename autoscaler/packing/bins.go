package packing

import "slices"

// bins are pods that are being filled. Their ids begin at 0.
type bins struct {
	load
	lists [][]int // the partitions of each pod, ascending
	own   []bool  // true for a pod whose list is not shared, so it can be changed in place
	loads []int64
	ranks ranks
	// before holds the earlier lists of changed pods, while the change may still be undone.
	before []change
	noting bool
}

type change struct {
	id   int
	list []int
}

// relieved returns n pods with what they own now, where each holds at most most, or one partition alone. pool holds the partitions that none of them has, the
// largest first.
func (l load) relieved(n int, most int64) (b *bins, pool []int) {
	b = &bins{load: l, lists: make([][]int, n), own: make([]bool, n), loads: make([]int64, n), ranks: make(ranks, n)}
	for p, id := range l.owner {
		if id == none || id >= n {
			pool = append(pool, p)
			continue
		}
		b.lists[id] = append(b.lists[id], p)
		b.loads[id] += l.sizes[p]
	}
	for id, list := range b.lists {
		if b.loads[id] > most {
			stay, leave := l.relieve(list, most)
			b.lists[id], b.loads[id] = stay, l.total(stay)
			pool = append(pool, leave...)
		}
		b.ranks[id] = b.rank(id)
	}
	slices.SortFunc(b.ranks, compare)
	l.decreasing(pool)
	return b, pool
}

// clone returns a copy that shares the lists.
func (b *bins) clone() *bins {
	clear(b.own)
	return &bins{
		load: b.load, lists: slices.Clone(b.lists), own: slices.Clone(b.own), loads: slices.Clone(b.loads), ranks: slices.Clone(b.ranks),
	}
}

func (b *bins) rank(id int) rank { return rankOf(id, b.loads[id], len(b.lists[id])) }

// put gives a partition to a pod.
func (b *bins) put(p, id int) {
	before := b.rank(id)
	b.note(id)
	if !b.own[id] {
		b.lists[id], b.own[id] = slices.Clone(b.lists[id]), true
	}
	i, _ := slices.BinarySearch(b.lists[id], p)
	b.lists[id] = slices.Insert(b.lists[id], i, p)
	b.loads[id] += b.sizes[p]
	b.ranks.change(before, b.rank(id))
}

// keep removes all partitions but these from a pod.
func (b *bins) keep(list []int, id int) {
	before := b.rank(id)
	b.note(id)
	b.lists[id], b.own[id], b.loads[id] = list, true, b.total(list)
	b.ranks.change(before, b.rank(id))
}

// note records the list of a pod that is about to change, if the change may still be undone.
func (b *bins) note(id int) {
	if b.noting {
		b.before = append(b.before, change{id, b.lists[id]})
		b.own[id] = false
	}
}

// open adds an empty pod.
func (b *bins) open() (id int) {
	id = len(b.lists)
	b.lists, b.own, b.loads = append(b.lists, nil), append(b.own, true), append(b.loads, 0)
	b.ranks.add(b.rank(id))
	return id
}

// grow opens pods until there are n.
func (b *bins) grow(n int) {
	for len(b.lists) < n {
		b.open()
	}
}

// closed removes the highest pod, and move gives its partitions to others. If move fails, everything but the ranks and loads is restored.
func (b *bins) closed(move func(pool []int) bool) bool {
	id := len(b.lists) - 1
	b.ranks.remove(b.rank(id))
	list := b.lists[id]
	b.lists, b.own, b.loads = b.lists[:id], b.own[:id], b.loads[:id]
	pool := slices.Clone(list)
	b.decreasing(pool)
	b.noting, b.before = true, b.before[:0]
	if move(pool) {
		return true
	}
	for _, c := range slices.Backward(b.before) {
		b.lists[c.id] = c.list
	}
	b.lists = append(b.lists, list)
	return false
}
