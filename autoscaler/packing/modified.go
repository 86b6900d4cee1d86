package packing

import (
	"cmp"
	"slices"
)

// The modified algorithms open the pods that exist one after the other. Before a pod is opened, its partitions are given to the pods
// that are open already, the smallest first, until one fits nowhere. If any are left, the pod is opened and keeps the largest of them,
// until one does not fit. What no pod has at the end is placed the largest first.

// ModifiedWorstFit is MWF: the pods with the most load are opened first, and partitions go to the lightest pod.
func ModifiedWorstFit(in Input) Packing { return modified(in, (*group).worstFit, byLoad) }

// ModifiedBestFit is MBF: the pods with the most load are opened first, and partitions go to the fullest pod where they fit.
func ModifiedBestFit(in Input) Packing { return modified(in, (*group).bestFit, byLoad) }

// ModifiedWorstFitP is MWFP: the pods with the largest partition are opened first, and partitions go to the lightest pod.
func ModifiedWorstFitP(in Input) Packing { return modified(in, (*group).worstFit, byLargest) }

// ModifiedBestFitP is MBFP: the pods with the largest partition are opened first, and partitions go to the fullest pod where they fit.
func ModifiedBestFitP(in Input) Packing { return modified(in, (*group).bestFit, byLargest) }

// PopBestFitDecreasing is an earlier adaptation of Best Fit Decreasing by the authors of the modified algorithms. The pods are
// opened by id, and partitions go to the fullest pod where they fit.
func PopBestFitDecreasing(in Input) Packing { return modified(in, (*group).bestFit, byID) }

// key is a pod's priority: the highest is opened first. The partitions are those of the pod, the largest first.
type key func(l load, partitions []int) int64

func byLoad(l load, partitions []int) int64    { return l.total(partitions) }
func byLargest(l load, partitions []int) int64 { return l.sizes[partitions[0]] }
func byID(load, []int) int64                   { return 0 }

func modified(in Input, fit fit, by key) Packing {
	g := newGroup(loadOf(in))
	pods, left := g.pods(by)
	for _, pod := range pods {
		rest := pod.partitions
		for n := len(rest); n > 0; n-- {
			id, ok := fit(g, g.sizes[rest[n-1]])
			if !ok {
				break
			}
			g.put(rest[n-1], id)
			rest = rest[:n-1]
		}
		kept := int64(0)
		for len(rest) > 0 && (kept == 0 || kept+g.sizes[rest[0]] <= room) {
			g.put(rest[0], pod.id)
			kept += g.sizes[rest[0]]
			rest = rest[1:]
		}
		left = append(left, rest...)
	}
	g.decreasing(left)
	for _, p := range left {
		g.assign(p, fit)
	}
	return g.packing(in)
}

// pod is one that exists.
type pod struct {
	id         int
	partitions []int // the largest first
	key        int64
}

// pods returns the pods that own something, in the order in which they are opened, and the partitions that nobody owns.
func (g *group) pods(by key) (pods []pod, others []int) {
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
		pods = append(pods, pod{id, list, by(g.load, list)})
	}
	slices.SortFunc(pods, func(a, b pod) int {
		if c := cmp.Compare(b.key, a.key); c != 0 {
			return c
		}
		return a.id - b.id
	})
	return pods, others
}
