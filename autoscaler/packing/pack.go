package packing

import (
	"math"
	"slices"

	"github.com/idalloc/idalloc/pkg/placement"
)

const (
	// spare is what a pod keeps free when it takes over from a closed pod: a fiftieth. So a pod is not closed now and opened a moment later.
	spare = full / 50
	// worth limits how much may move to make room for what a closed pod had: this many capacities, times the fraction of pods above the lower bound. At a
	// twentieth above, one capacity may move; at twice the bound, twenty. Nearly every pod can be closed if enough changes places: without a limit there would
	// be more moves than with the paper's Modified Worst Fit (arXiv 2206.11170). If nothing may be displaced, 15 to 19 % more pods stay. A fixed limit of one
	// capacity gets stuck 28 % above the bound. This limit depends only on the present, so a controller that has just started packs alike.
	worth = 20
	// unlimited is more than can ever move.
	unlimited = math.MaxInt64 / 2
)

// Pack packs partitions into pods. The package documentation explains how.
func Pack(in Input) Packing {
	l := loadOf(in)
	for {
		b, settled := l.pack(in)
		if settled {
			return l.packing(b.lists)
		}
		l.owner = b.owners()
	}
}

// pack packs once. settled is true if the result would be packed the same way again.
func (l load) pack(in Input) (b *bins, settled bool) {
	bound := l.bound()
	least := max(in.Min, bound, 0)
	n := max(l.used(), least)
	if in.Max > 0 {
		n, least = min(n, in.Max), min(least, in.Max)
	}
	if in.Max <= 0 || bound <= in.Max {
		if b := l.grown(n, in.Max); b != nil {
			b.shrink(least, bound)
			return b, true
		}
	}
	b = l.even(in.Max)
	return b, slices.Equal(b.owners(), l.owner)
}

// grown returns n pods that do not hold too much, or more if needed. It returns nil if it needs more than most.
func (l load) grown(n, most int) *bins {
	b, pool := l.relieved(n, room)
	kept := b.clone()
	for _, p := range pool {
		id, ok := b.ranks.best(l.sizes[p], room)
		if !ok {
			id = b.open()
		}
		b.put(p, id)
	}
	if most > 0 && len(b.lists) > most {
		kept.grow(most)
		if !kept.place(pool, room, unlimited, ranks.worst) {
			return nil
		}
		return kept
	}
	if kept.grow(len(b.lists)); kept.spread(pool) {
		return kept
	}
	return b
}

// spread puts each partition into the lightest pod, because light pods have room for growth. It returns false if one does not fit.
func (b *bins) spread(pool []int) bool {
	for _, p := range pool {
		id, ok := b.ranks.worst(b.sizes[p], room)
		if !ok {
			return false
		}
		b.put(p, id)
	}
	return true
}

// shrink closes the highest pod while its partitions fit elsewhere.
func (b *bins) shrink(least, bound int) {
	for n := len(b.lists); n > least; n-- {
		budget := int64(full) / int64(max(bound, 1)) * int64(n-bound) * worth
		if !b.closed(func(pool []int) bool { return b.place(pool, room-spare, budget, ranks.best) }) {
			return
		}
	}
}

// owners returns the owner of each partition.
func (b *bins) owners() []int {
	owner := make([]int, len(b.sizes))
	for id, list := range b.lists {
		for _, p := range list {
			owner[p] = id
		}
	}
	return owner
}

// packing returns the finished packing. pods lists the partitions of each id.
func (l load) packing(pods [][]int) Packing {
	p := Packing{Owners: make(placement.Owners, len(pods)), Pods: len(pods), Oversized: l.oversized()}
	for id, partitions := range pods {
		p.Owners[id] = placement.Of(partitions...)
	}
	return p
}
