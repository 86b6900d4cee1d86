package main

import (
	"cmp"
	"slices"

	"github.com/idalloc/idalloc/autoscaler/packing"
)

// The modified algorithms open the pods that exist one after the other, those with the most load first. Before a pod is opened, its partitions
// are given to the pods that are open already, the smallest first, until one fits nowhere. If any are left, the pod is opened and keeps the
// largest of them, until one does not fit. What no pod has at the end is placed the largest first.

// modified puts partitions into the pod that fit finds.
func modified(fit fit) algorithm {
	return func(in packing.Input) packing.Packing {
		g := newGroup(in)
		pods, left := g.pods()
		for _, pod := range pods {
			left = append(left, g.reopen(pod, fit)...)
		}
		g.decreasing(left)
		for _, p := range left {
			g.assign(p, fit)
		}
		return g.packing()
	}
}

// reopen gives the partitions of a pod to open pods, opens the pod for what is left, and returns what it does not hold.
func (g *group) reopen(pod pod, fit fit) (left []int) {
	rest := pod.partitions
	for n := len(rest); n > 0; n-- {
		id := g.find(g.Speeds[rest[n-1]], fit)
		if id == none {
			break
		}
		g.put(rest[n-1], id)
		rest = rest[:n-1]
	}
	kept := 0.0
	for len(rest) > 0 && (kept == 0 || kept+g.Speeds[rest[0]] <= g.Capacity) {
		g.put(rest[0], pod.id)
		kept += g.Speeds[rest[0]]
		rest = rest[1:]
	}
	return rest
}

// pod is one that exists.
type pod struct {
	id         int
	partitions []int // the largest first
	load       float64
}

// pods returns the pods that own something, in the order in which they are opened, and the partitions that no pod owns.
func (g *group) pods() (pods []pod, others []int) {
	lists := map[int][]int{}
	for p, id := range g.owner {
		if id == none {
			others = append(others, p)
		} else {
			lists[id] = append(lists[id], p)
		}
	}
	for id, list := range lists {
		g.decreasing(list)
		load := 0.0
		for _, p := range list {
			load += g.Speeds[p]
		}
		pods = append(pods, pod{id, list, load})
	}
	slices.SortFunc(pods, func(a, b pod) int { return cmp.Or(cmp.Compare(b.load, a.load), a.id-b.id) })
	return pods, others
}
