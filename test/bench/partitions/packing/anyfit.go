package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/idalloc/idalloc/autoscaler/packing"
	"github.com/idalloc/idalloc/pkg/placement"
)

// The any-fit algorithms take the partitions one by one, and open a pod only when a partition fits into none of those that are open.
// Those that are not called decreasing take them by number. A new pod gets the id that owns the partition now, if that id is not open
// yet, or else the lowest that is not open. This is how the paper adapts them to pods that exist; it costs nothing and saves moves.

// anyFit puts each partition into the pod that fit finds: the largest first if decreasing, otherwise by number.
func anyFit(fit fit, decreasing bool) algorithm {
	return func(in packing.Input) packing.Packing {
		g := newGroup(in)
		all := make([]int, len(in.Speeds))
		for p := range all {
			all[p] = p
		}
		if decreasing {
			g.decreasing(all)
		}
		for _, p := range all {
			g.assign(p, fit)
		}
		return g.packing()
	}
}

// fit finds an open pod for a speed.
type fit func(g *group, speed float64) (id int, ok bool)

// none is the pod of a partition that no pod owns.
const none = -1

// full is the capacity of a pod. Speeds are rounded to whole parts of it, as Pack does, so that sums do not depend on their order. A
// billionth more may stand in a pod.
const full = 1 << 36

// group are open pods. Their ids may have gaps. Its speeds and capacity are in parts of full.
type group struct {
	packing.Input
	owner []int   // of each partition: the id that owns it, or none
	lists [][]int // of each id; nil if the pod is not open
	loads []float64
	ranks []rank // of the open pods, the lightest first
	next  int    // all ids below are open
}

// rank is a pod's place. Of pods that are as light, the one with fewer partitions comes first, and then the lower id.
type rank struct {
	load      float64
	count, id int
}

func compare(a, b rank) int {
	return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.count, b.count), cmp.Compare(a.id, b.id))
}

func newGroup(in packing.Input) *group {
	g := &group{Input: in, owner: slices.Repeat([]int{none}, len(in.Speeds))}
	g.Speeds, g.Capacity = slices.Clone(in.Speeds), full+full>>30
	for p, speed := range in.Speeds {
		g.Speeds[p] = math.Round(speed / in.Capacity * full)
	}
	for id, set := range in.Owners {
		for p := range set.All() {
			g.owner[p] = id
		}
	}
	return g
}

// firstFit returns the open pod with the lowest id where speed fits.
func (g *group) firstFit(speed float64) (id int, ok bool) {
	for id, list := range g.lists {
		if list != nil && g.loads[id]+speed <= g.Capacity {
			return id, true
		}
	}
	return none, false
}

// bestFit returns the fullest open pod where speed fits.
func (g *group) bestFit(speed float64) (id int, ok bool) {
	i, _ := slices.BinarySearchFunc(g.ranks, g.Capacity-speed, func(r rank, most float64) int {
		if r.load <= most {
			return -1
		}
		return 1
	})
	if i == 0 {
		return none, false
	}
	return g.ranks[g.find(rank{load: g.ranks[i-1].load})].id, true // the first of those that are as full
}

// worstFit returns the lightest open pod, if speed fits there.
func (g *group) worstFit(speed float64) (id int, ok bool) {
	if len(g.ranks) == 0 || g.ranks[0].load+speed > g.Capacity {
		return none, false
	}
	return g.ranks[0].id, true
}

// find returns the index of a rank, or where it would stand.
func (g *group) find(r rank) int {
	i, _ := slices.BinarySearchFunc(g.ranks, r, compare)
	return i
}

// decreasing sorts partitions by speed, the fastest first. Of two that are as fast, the lower number comes first.
func (g *group) decreasing(partitions []int) {
	slices.SortFunc(partitions, func(p, q int) int { return cmp.Or(cmp.Compare(g.Speeds[q], g.Speeds[p]), p-q) })
}

// assign puts a partition into the open pod that fit finds, or into a new one.
func (g *group) assign(p int, fit fit) {
	id, ok := fit(g, g.Speeds[p])
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

// put gives a partition to a pod, which it opens if it has to.
func (g *group) put(p, id int) {
	for len(g.lists) <= id {
		g.lists, g.loads = append(g.lists, nil), append(g.loads, 0)
	}
	if g.open(id) {
		i := g.find(rank{g.loads[id], len(g.lists[id]), id})
		g.ranks = slices.Delete(g.ranks, i, i+1)
	}
	g.lists[id] = append(g.lists[id], p)
	g.loads[id] += g.Speeds[p]
	r := rank{g.loads[id], len(g.lists[id]), id}
	g.ranks = slices.Insert(g.ranks, g.find(r), r)
}

// packing returns the packing.
func (g *group) packing() packing.Packing {
	pods := len(g.ranks)
	owners := make(placement.Owners, pods)
	for id, list := range g.lists {
		if list != nil {
			owners[id] = placement.Of(list...)
		}
	}
	return packing.Packing{Owners: owners, Pods: pods}
}
