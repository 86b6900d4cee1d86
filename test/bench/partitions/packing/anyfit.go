package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/idalloc/idalloc/autoscaler/packing"
	"github.com/idalloc/idalloc/pkg/placement"
)

// bestFitDecreasing takes the partitions one by one, the largest first, and opens a pod only when a partition fits into none of those that are
// open. A new pod gets the id that owns the partition now, if that id is not open yet, or else the lowest that is not open. This is how the paper
// adapts it to pods that exist; it costs nothing and saves moves.
func bestFitDecreasing(in packing.Input) packing.Packing {
	g := newGroup(in)
	all := make([]int, len(in.Speeds))
	for p := range all {
		all[p] = p
	}
	g.decreasing(all)
	for _, p := range all {
		g.assign(p, bestFit)
	}
	return g.packing()
}

// fit compares two open pods by their ids: a partition that fits into both goes into the lesser one, and into the lower id if they are alike.
type fit func(g *group, a, b int) int

// bestFit prefers the fullest pod, worstFit the lightest. Of pods that are as full both prefer the one with fewer partitions.
func bestFit(g *group, a, b int) int {
	return cmp.Or(cmp.Compare(g.loads[b], g.loads[a]), len(g.lists[a])-len(g.lists[b]))
}

func worstFit(g *group, a, b int) int {
	return cmp.Or(cmp.Compare(g.loads[a], g.loads[b]), len(g.lists[a])-len(g.lists[b]))
}

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
	next  int // all ids below are open
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

// find returns the open pod for a speed, none if it fits nowhere.
func (g *group) find(speed float64, fit fit) int {
	found := none
	for id := range g.lists {
		if g.open(id) && g.loads[id]+speed <= g.Capacity && (found == none || fit(g, id, found) < 0) {
			found = id
		}
	}
	return found
}

// decreasing sorts partitions by speed, the fastest first. Of two that are as fast, the lower number comes first.
func (g *group) decreasing(partitions []int) {
	slices.SortFunc(partitions, func(p, q int) int { return cmp.Or(cmp.Compare(g.Speeds[q], g.Speeds[p]), p-q) })
}

// assign puts a partition into the open pod that fit finds, or into a new one.
func (g *group) assign(p int, fit fit) {
	id := g.find(g.Speeds[p], fit)
	if id == none {
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
	g.lists[id] = append(g.lists[id], p)
	g.loads[id] += g.Speeds[p]
}

// packing returns the packing.
func (g *group) packing() packing.Packing {
	owners := placement.Owners{}
	for id, list := range g.lists {
		if list != nil {
			owners[id] = placement.Of(list...)
		}
	}
	return packing.Packing{Owners: owners, Pods: len(owners)}
}
