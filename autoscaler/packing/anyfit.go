package packing

import "github.com/idalloc/idalloc/pkg/placement"

// The any-fit algorithms take the partitions one by one, and open a pod only when a partition fits into none of those that are open.
// Those that are not called decreasing take them by number. A new pod gets the id that owns the partition now, if that id is not open
// yet, or else the lowest that is not open. This is how the paper adapts them to pods that exist; it costs nothing and saves moves.

// FirstFit puts each partition into the open pod with the lowest id where it fits.
func FirstFit(in Input) Packing { return anyFit(in, (*group).firstFit, false) }

// BestFit puts each partition into the fullest open pod where it fits.
func BestFit(in Input) Packing { return anyFit(in, (*group).bestFit, false) }

// WorstFit puts each partition into the lightest open pod, if it fits there.
func WorstFit(in Input) Packing { return anyFit(in, (*group).worstFit, false) }

// FirstFitDecreasing is FirstFit with the largest partition first.
func FirstFitDecreasing(in Input) Packing { return anyFit(in, (*group).firstFit, true) }

// BestFitDecreasing is BestFit with the largest partition first.
func BestFitDecreasing(in Input) Packing { return anyFit(in, (*group).bestFit, true) }

// WorstFitDecreasing is WorstFit with the largest partition first.
func WorstFitDecreasing(in Input) Packing { return anyFit(in, (*group).worstFit, true) }

func anyFit(in Input, fit fit, decreasing bool) Packing {
	g := newGroup(loadOf(in))
	all := make([]int, len(g.sizes))
	for p := range all {
		all[p] = p
	}
	if decreasing {
		g.decreasing(all)
	}
	for _, p := range all {
		g.assign(p, fit)
	}
	return g.packing(in)
}

// fit finds an open pod for a size.
type fit func(g *group, size int64) (id int, ok bool)

// group are open pods. Their ids may have gaps.
type group struct {
	load
	lists [][]int // of each id; nil if the pod is not open
	loads []int64
	ranks ranks
	next  int // all ids below are open
}

func newGroup(l load) *group { return &group{load: l} }

func (g *group) firstFit(size int64) (id int, ok bool) {
	for id, list := range g.lists {
		if list != nil && g.loads[id]+size <= room {
			return id, true
		}
	}
	return none, false
}

func (g *group) bestFit(size int64) (id int, ok bool) { return g.ranks.best(size, room) }

func (g *group) worstFit(size int64) (id int, ok bool) { return g.ranks.worst(size, room) }

// assign puts a partition into the open pod that fit finds, or into a new one.
func (g *group) assign(p int, fit fit) {
	id, ok := fit(g, g.sizes[p])
	if !ok {
		if id = g.owner[p]; id == none || g.open(id) {
			for g.open(g.next) {
				g.next++
			}
			id = g.next
		}
	}
	g.put(p, id)
}

func (g *group) open(id int) bool { return id < len(g.lists) && g.lists[id] != nil }

// add opens a pod.
func (g *group) add(id int) {
	for len(g.lists) <= id {
		g.lists, g.loads = append(g.lists, nil), append(g.loads, 0)
	}
	g.lists[id] = []int{}
	g.ranks.add(rankOf(id, 0, 0))
}

// put gives a partition to a pod, which it opens if it has to.
func (g *group) put(p, id int) {
	if !g.open(id) {
		g.add(id)
	}
	before := rankOf(id, g.loads[id], len(g.lists[id]))
	g.lists[id] = append(g.lists[id], p)
	g.loads[id] += g.sizes[p]
	g.ranks.change(before, rankOf(id, g.loads[id], len(g.lists[id])))
}

// packing returns the packing. Without gaps, pods whose id is not below the number of pods get an id that is free below.
func (g *group) packing(in Input) Packing {
	for len(g.ranks) < in.Min {
		g.openNext()
	}
	pods := len(g.ranks)
	owners := make(placement.Owners, pods)
	free := 0
	for id, list := range g.lists {
		if list == nil {
			continue
		}
		if !in.Gaps && id >= pods {
			for g.open(free) {
				free++
			}
			id = free
			free++
		}
		owners[id] = placement.Of(list...)
	}
	return Packing{Owners: owners, Pods: pods, Oversized: g.oversized()}
}

// openNext opens a pod that has nothing.
func (g *group) openNext() {
	for g.open(g.next) {
		g.next++
	}
	g.add(g.next)
}
