package proposal

import (
	"maps"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// own plans who owns which partitions (rules 7 to 9), after the slots are planned.
func (p *planner) own() {
	row := p.in.State.Row
	if p.next.Row = row; p.in.Partitions.Ends {
		p.next.Row, p.d.Partitions.Changed = nil, row != nil
		return
	}
	next, strategy := InForce(p.in.Partitions.Wish, row, p.said(row == nil), p.in.Partitions.Strategies)
	if strategy == nil {
		p.d.Partitions.Unknown = next.Strategy
	}
	if strategy == nil || p.in.Partitions.Unchanged {
		return
	}
	alone, unclear, locked := p.locks()
	sure := locked.Minus(unclear)
	was := placement.Owners{} // by a lock, or else by the row
	for id, set := range p.row() {
		was[id] = set.Minus(sure)
	}
	for id, set := range alone {
		was[id] = was[id].Union(set)
	}
	members, vacated := p.members(next.Strategy)
	target := strategy(placement.Input{
		Partitions: next.Count, Count: p.in.Count, Members: members, Owners: was, Target: p.in.Partitions.Wish.Target,
	})
	next.Owners = make(placement.Owners, len(members))
	free := placement.Between(0, next.Count-1).Minus(locked)
	for _, id := range members { // in order, because a program's own strategy may name a partition twice, or one that does not exist
		gets := target[id].Intersect(free)
		free = free.Minus(gets)
		next.Owners[id] = was[id].Intersect(locked).Union(gets)
	}
	for id, set := range was {
		if keeps := set.Intersect(locked); id >= p.in.Count && !keeps.Empty() {
			next.Owners[id] = keeps
		}
	}
	p.next.Row = &next
	ends := next.Count == 0 && locked.Empty() && (p.in.Partitions.Wish.HasCount || p.said(true) == 0)
	if ends || (row == nil && len(next.Owners) == 0) {
		p.next.Row = nil // no pod works on partitions now
	}
	moves := &p.d.Partitions
	moves.Changed = !p.next.Row.Same(row)
	moves.Gained, moves.Lost = more(next.Owners, was), more(was, next.Owners)
	for _, id := range vacated {
		if !was[id].Empty() {
			moves.FailedOver = append(moves.FailedOver, Owned{id, was[id]})
		}
	}
}

// row returns the owners of the row as it was read.
func (p *planner) row() placement.Owners {
	if p.in.State.Row == nil {
		return nil
	}
	return p.in.State.Row.Owners
}

// locks returns three things: what the holder of each id locks and no other pod does; what is locked in any other way (by several pods, by a pod without a
// slot, or by a damaged receipt); and all that is locked.
func (p *planner) locks() (alone placement.Owners, unclear, locked placement.Set) {
	alone = placement.Owners{}
	var pods [placement.MaxCount]int // the number of pods that lock each partition; uniting set by set would take that many steps for each set
	for _, pod := range p.alive {
		set := pod.Receipt.LocksOf(placement.Between(0, placement.MaxCount-1))
		if id, has := p.holds[pod.Name]; has && pod.Receipt.State == receipt.Locks {
			alone[id] = set
		} else {
			unclear = unclear.Union(set)
		}
		for k := range set.All() {
			pods[k]++
		}
	}
	var by, several []int
	for k := range pods {
		if pods[k] > 0 {
			by = append(by, k)
		}
		if pods[k] > 1 {
			several = append(several, k)
		}
	}
	unclear, locked = unclear.Union(placement.Of(several...)), placement.Of(by...)
	for id, set := range alone {
		alone[id] = set.Minus(unclear)
	}
	return alone, unclear, locked
}

// members returns the members in ascending order, and the ids that stop being members because they are vacant (rule 7).
func (p *planner) members(strategy string) (members, vacated []int) {
	is := make(map[int]bool, len(p.next.Slots))
	gone := p.goneAtOnce(strategy)
	for _, id := range p.row().IDs() {
		switch {
		case id >= p.in.Count || p.divides(id, false):
		case p.idle(id) && (p.vacant(id) || gone(id)):
			vacated = append(vacated, id)
		default: // its holder may be about to take the slot, or its receipt may be damaged
			is[id] = true
		}
	}
	var joining []int
	for id, name := range p.next.Slots {
		switch {
		case id >= p.in.Count || !p.divides(id, true):
		case p.pods[name].Receipt.Share.Partitions.Empty():
			joining = append(joining, id)
		default: // it is a member, regardless of the row
			is[id] = true
		}
	}
	beside := strategy == placement.NamePrimary && len(is) > 0
	for _, id := range joining {
		if !p.in.Partitions.Gathers && (!beside || p.in.Partitions.Joins[id]) {
			is[id] = true
		}
	}
	return slices.Sorted(maps.Keys(is)), vacated
}

// idle reports whether no pod locks the slot, as far as receipts are readable.
func (p *planner) idle(id int) bool {
	_, locked := p.lockers[id]
	pod, has := p.pods[p.next.Slots[id]]
	return !locked && (!has || !pod.Receipt.Locked())
}

// vacant reports whether the id has been without a holder for failover-after. A pod with a new entry gets the full time to take it.
func (p *planner) vacant(id int) bool {
	pod, is := p.in.Partitions.Vacant[id]
	name, taken := p.next.Slots[id]
	return is && (!taken || name == pod)
}

// goneAtOnce returns a function that reports whether an idle id fails over at once, because no pod can take it within moments and a stand-in works: no pod
// that has or may get it is known to run. Pods are listed by metadata alone, so a replacement that starts looks like one that cannot be scheduled.
func (p *planner) goneAtOnce(strategy string) func(id int) bool {
	able, standIn := false, false
	for _, pod := range p.alive {
		slot, has := p.holds[pod.Name]
		within := has && slot < p.in.Count
		able = able || !within && pod.Owned && !pod.Terminating && !pod.Condemned && pod.runs()
		standIn = standIn || within && !pod.Terminating && p.divides(slot, true)
	}
	applies := p.in.Partitions.AtOnce && strategy == placement.NamePrimary && standIn
	return func(id int) bool {
		name, taken := p.next.Slots[id]
		return applies && (taken && !p.pods[name].runs() || !taken && !able)
	}
}

// divides reports whether a receipt shows that the holder of the id works on partitions (yes), or that it does not (no).
func (p *planner) divides(id int, yes bool) bool {
	pod, has := p.pods[p.next.Slots[id]]
	return has && pod.Receipt.State == receipt.Locks && (pod.Receipt.Share.Of > 0) == yes
}

// more returns what the ids have in a and not in b.
func more(a, b placement.Owners) []Owned {
	var all []Owned
	for _, id := range a.IDs() {
		if set := a[id].Minus(b[id]); !set.Empty() {
			all = append(all, Owned{id, set})
		}
	}
	return all
}
