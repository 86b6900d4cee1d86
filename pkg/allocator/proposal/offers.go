package proposal

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Offers are the proposals in one version of an owner. Each pod reads its own from the annotations, or the controller reads all of them. One goroutine may
// use it at a time.
type Offers struct {
	count      int
	state      assignment.State
	wish       assignment.Wish
	strategies Strategies
	// targets are the targets of the ids in the row, by the number of partitions according to receipts. Caching them saves a thousand pods from computing
	// them again.
	targets map[int]target
	// disjoint: the row names no partition twice.
	disjoint bool
	// divide are the ids below the count that the row names and that have a pod, in ascending order. It is nil until needed.
	divide []int
}

// target is what ids should own, and the union of that.
type target struct {
	owners placement.Owners
	all    placement.Set
	known  bool
}

func targetOf(owners placement.Owners, known bool) target {
	return target{owners: owners, all: all(owners), known: known}
}

// all returns the union of all sets. Uniting set by set would take that many steps for each set.
func all(owners placement.Owners) placement.Set {
	var together []int
	for _, set := range owners {
		together = slices.AppendSeq(together, set.All())
	}
	return placement.Of(together...)
}

// others returns what the other ids should own.
func (t target) others(id int) placement.Set { return t.all.Minus(t.owners[id]) }

// Mine describes a pod that reads its offer.
type Mine struct {
	Pod string
	// Divides: the pod works on partitions. Pauses: it must take none now. HandsOver: it knows when its work has stopped.
	Divides, Pauses, HandsOver bool
	// Locked is what its receipt locks, and Works what it works on.
	Locked, Works receipt.Share
}

// NewOffers returns the offers of this version of an owner.
func NewOffers(count int, state assignment.State, wish assignment.Wish, strategies Strategies) *Offers {
	o := &Offers{count: count, state: state, wish: wish, strategies: strategies, targets: map[int]target{}, disjoint: true}
	if row := state.Row; row != nil {
		named := 0
		for _, set := range row.Owners {
			named += set.Len()
		}
		o.disjoint = named == all(row.Owners).Len()
	}
	return o
}

// To returns the slot that is proposed to the pod, with its partitions, and the partitions that it should yield.
func (o *Offers) To(m Mine) (propose receipt.Share, yield placement.Set) {
	if !m.Locked.Empty() { // the next plan handles what the map says about it
		return o.At(m, m.Locked.ID)
	}
	if id, named := o.state.Slots.Of(m.Pod); named {
		return o.At(m, id)
	}
	return receipt.Nothing(), yield
}

// At is To for a pod that has this slot, or will have it.
func (o *Offers) At(m Mine, id int) (propose receipt.Share, yield placement.Set) {
	return o.share(m, id), o.yields(m, id)
}

// Requester returns the pod that asks for this pod's slot, empty if none does.
func (o *Offers) Requester(m Mine) string {
	if !m.HandsOver {
		return ""
	}
	return o.state.Handover[m.Locked.ID]
}

// Shared reports whether ids other than that of the pod have partitions to divide, and a pod that may work on them.
func (o *Offers) Shared(m Mine) bool {
	if o.divide == nil {
		o.divide = slices.DeleteFunc(o.state.Row.Members(), func(id int) bool { return o.state.Slots[id] == "" || id >= o.count })
	}
	return slices.ContainsFunc(o.divide, func(id int) bool { return o.state.Slots[id] != m.Pod })
}

// share returns the slot with the partitions that the row proposes to its id.
func (o *Offers) share(m Mine, id int) receipt.Share {
	s := receipt.Share{ID: id}
	if !m.Divides || m.Pauses {
		return s
	}
	row := o.state.Row
	force, _ := InForce(o.wish, row, o.said(m), o.strategies)
	if s.Of = force.Count; row != nil && s.Of > 0 {
		s.Partitions = row.Owners[id].Intersect(placement.Between(0, s.Of-1))
	}
	if mine := m.Locked; !m.HandsOver && mine.Of > 0 { // it cannot know when work has stopped, so it yields nothing
		s.Of, s.Partitions = max(s.Of, mine.Of), s.Partitions.Union(mine.Partitions)
	}
	return s
}

// said returns the number of partitions in the pod's receipt, 0 if it has none.
func (o *Offers) said(m Mine) int {
	if o.state.Row == nil || !m.Locked.Partitions.Empty() {
		return m.Locked.Of
	}
	return 0
}

// Target returns what the id should own, and whether that is known.
func (o *Offers) Target(m Mine, id int) (set placement.Set, known bool) {
	t := o.target(m)
	return t.owners[id], t.known
}

func (o *Offers) target(m Mine) target {
	said := o.said(m)
	t, there := o.targets[said]
	if !there {
		t = targetOf(Target(o.count, o.state.Row, o.wish, said, o.strategies))
		o.targets[said] = t
	}
	return t
}

// withWorks returns the target for the case that the pod's id owns what the pod works on, and no other id does, regardless of the row.
func (o *Offers) withWorks(m Mine, id int) target {
	mine, row := m.Works.Partitions, o.state.Row
	if o.disjoint && mine.Equal(row.Owners[id]) {
		return o.target(m)
	}
	owners := make(placement.Owners, len(row.Owners))
	for other, set := range row.Owners {
		owners[other] = set.Minus(mine)
	}
	owners[id] = mine
	return targetOf(Target(o.count, &assignment.Row{Count: row.Count, Strategy: row.Strategy, Owners: owners}, o.wish, o.said(m), o.strategies))
}

// yields returns the partitions of the id that the target gives to others, or to no id because they are above the count. Partitions on which the pod works
// are included only if withWorks also gives them to others, so that a wrong row stops no work.
func (o *Offers) yields(m Mine, id int) placement.Set {
	row := o.state.Row
	if !m.Divides || !m.HandsOver || row == nil {
		return placement.Set{}
	}
	force, _ := InForce(o.wish, row, o.said(m), o.strategies)
	has := m.Locked.Partitions.Union(row.Owners[id])
	above := has.Minus(placement.Between(0, force.Count-1))
	if _, listed := row.Owners[id]; !listed {
		return above // the row is wrong, or this id will join soon
	}
	return has.Intersect(o.target(m).others(id)).Minus(m.Works.Partitions.Minus(o.withWorks(m, id).others(id))).Union(above)
}
