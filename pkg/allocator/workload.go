package allocator

import (
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/placement"
)

// workload is what the annotations of the owner propose to this pod. It is a source of the view.
type workload struct {
	owner store.Owner
	pod   string
	// divides says that the pod works on partitions, pauses that it is to take none now, and handsOver that it knows when its work has stopped.
	divides, pauses, handsOver bool
	strategies                 proposal.Strategies
	// locked is what its receipt locks, and works what it works on.
	locked, works receipt.Share
}

func (a *Allocator) workload() workload {
	return workload{a.view.owner, a.o.Pod, a.o.Divides, a.work.paused || a.work.rest.active, a.o.HandsOver, a.o.strategy, a.tenure.Lock.Share, a.tenure.Working}
}

// proposes returns the slot that is proposed to the pod, with its partitions, and those that are to go.
func (w workload) proposes() (propose receipt.Share, yield placement.Set) {
	id, named := w.owner.Record.State.Slots.Of(w.pod)
	switch {
	case !w.locked.Empty(): // what the map says of it is for the next plan
		id = w.locked.ID
	case !named:
		return receipt.Nothing(), yield
	}
	return w.proposed(id), w.yields(id)
}

// asks is the pod that asks for the slot, empty if none does.
func (w workload) asks() string {
	if !w.handsOver {
		return ""
	}
	return w.owner.Record.State.Handover[w.locked.ID]
}

// proposed returns the slot with what the row proposes to its id.
func (w workload) proposed(id int) receipt.Share {
	s := receipt.Share{ID: id}
	if !w.divides || w.pauses {
		return s
	}
	mine, row := w.locked, w.owner.Record.State.Row
	force, _ := proposal.InForce(w.owner.Wish, row, w.said(), w.strategies)
	if s.Of = force.Count; row != nil && s.Of > 0 {
		s.Partitions = row.Owners[id].Intersect(placement.Between(0, s.Of-1))
	}
	if !w.handsOver && mine.Of > 0 { // it cannot know when work has stopped, so it lets nothing go
		s.Of, s.Partitions = max(s.Of, mine.Of), s.Partitions.Union(mine.Partitions)
	}
	return s
}

// said returns how many partitions there are by the own receipt, 0 if it does not say so.
func (w workload) said() int {
	if mine := w.locked; w.owner.Record.State.Row == nil || !mine.Partitions.Empty() {
		return mine.Of
	}
	return 0
}

// target returns what the ids should own that the row names. With works, what this pod works on is its id's, and nothing else is, whatever the row says.
func (w workload) target(id int, works bool) (target placement.Owners, known bool) {
	mine, row := w.works.Partitions, w.owner.Record.State.Row
	if works {
		owners := placement.Owners{}
		for other, set := range row.Owners {
			owners[other] = set.Minus(mine)
		}
		owners[id] = mine
		row = &assignment.Row{Count: row.Count, Strategy: row.Strategy, Owners: owners}
	}
	return proposal.Target(w.owner.Count, row, w.owner.Wish, w.said(), w.strategies)
}

// yields returns the partitions of the id that the target gives to others, or to nobody because they are above the count. Of those that the pod
// works on they are only those that go by that, too: a row that is wrong stops no work.
func (w workload) yields(id int) placement.Set {
	mine, row := w.locked.Partitions, w.owner.Record.State.Row
	if !w.divides || !w.handsOver || row == nil {
		return placement.Set{}
	}
	force, _ := proposal.InForce(w.owner.Wish, row, w.said(), w.strategies)
	has := mine.Union(row.Owners[id])
	above := has.Minus(placement.Between(0, force.Count-1))
	if _, listed := row.Owners[id]; !listed {
		return above // the row is wrong, or this id is about to join
	}
	theirs := func(works bool) (set placement.Set) {
		target, _ := w.target(id, works)
		for other, owned := range target {
			if other != id {
				set = set.Union(owned)
			}
		}
		return set
	}
	goes := theirs(false)
	return has.Intersect(goes).Minus(w.works.Partitions.Minus(theirs(true))).Union(above)
}
