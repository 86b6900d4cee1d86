package decision

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// index finds locks by slot and by partition. It is made once: with a thousand pods and partitions, comparing each pair would take a million comparisons.
type index struct {
	slots      map[int][]int
	partitions [placement.MaxCount][]int
	// unclear are unreadable locks. They may cover anything.
	unclear []int
}

func (v *view) index() *index {
	if v.found != nil {
		return v.found
	}
	x := &index{slots: make(map[int][]int, len(v.w.Locks))}
	for i, l := range v.w.Locks {
		switch l.Receipt.State {
		case receipt.Unreadable:
			x.unclear = append(x.unclear, i)
		case receipt.Locks:
			x.slots[l.Receipt.Share.ID] = append(x.slots[l.Receipt.Share.ID], i)
			for k := range l.Receipt.Share.Partitions.Intersect(placement.Between(0, placement.MaxCount-1)).All() {
				x.partitions[k] = append(x.partitions[k], i)
			}
		case receipt.None, receipt.Waits, receipt.GaveUp:
		}
	}
	v.found = x
	return x
}

// of returns the locks that may overlap with the share.
func (x *index) of(s receipt.Share) []int {
	all := slices.Concat(x.unclear, x.slots[s.ID])
	for k := range s.Partitions.All() {
		if k < len(x.partitions) && len(x.partitions[k]) > 1 { // its own lock is one of them
			all = append(all, x.partitions[k]...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// others returns the outcome of T3 for an agent: the part of its receipt that other pods also lock. A program that runs under a slot locks it, even if its
// receipt was changed or removed.
func (v *view) others(p *pod) *receipt.Confirmed {
	mine, out := duty.LockOf(p.Receipt), duty.Others{}
	by := ""
	for _, i := range v.index().of(mine.Share) {
		l := v.w.Locks[i]
		if l.UID == p.UID || p.Receipt.Strict && l.Receipt.Strict && l.Overdue { // its Lease limits how long that pod may act
			continue
		}
		if blocks := duty.LockOf(l.Receipt).Blocks(mine); blocks.Any() {
			out, by = out.And(blocks), l.Pod
		}
	}
	if name := v.unlocked[mine.Share.ID]; name != "" {
		out.Slot, by = true, name
	}
	return &receipt.Confirmed{Write: p.Receipt.Write, Share: p.Receipt.Share, Slot: out.Slot, Partitions: out.Partitions, By: by}
}
