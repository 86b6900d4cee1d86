package decision

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// index finds the locks of a thing. For a thousand pods with partitions it is made once, because to compare each two would be a million comparisons.
type index struct {
	slots      map[int][]int
	partitions [placement.MaxCount][]int
	// unclear are locks of which it is not known what they hold.
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

// of returns the locks that may be about what the share has.
func (x *index) of(s receipt.Share) []int {
	all := slices.Concat(x.unclear, x.slots[s.ID])
	for k := range s.Partitions.All() {
		if k < len(x.partitions) && len(x.partitions[k]) > 1 { // its own is one of them
			all = append(all, x.partitions[k]...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// others is the outcome of T3 for an agent: what other pods lock of what its receipt does. A program that runs under a slot locks it, whatever became of
// its receipt.
func (v *view) others(p *pod) *receipt.Confirmed {
	mine, out := duty.LockOf(p.Receipt), duty.Others{}
	by := ""
	for _, i := range v.index().of(mine.Share) {
		l := v.w.Locks[i]
		if l.UID == p.UID || p.Receipt.Strict && l.Receipt.Strict && l.Overdue { // its Lease says for how long
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
