package plan

import (
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/ownership"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// own plans who owns which partitions (rules 7 to 11), now that the slots are planned.
func (p *planner) own() {
	in := p.in.Partitions
	p.next.Partitions = p.in.State.Partitions
	if in.Unchanged || in.Trust == assignment.Unreadable {
		return
	}
	if in.Trust == assignment.Absent && !in.Wish.HasCount {
		return // the usual workload
	}
	clean := p.in.Trust == assignment.Clean && in.Trust == assignment.Clean
	o := ownership.Input{
		Count: p.in.Count, Before: p.in.State.Partitions, Trust: in.Trust, Clean: clean, Renew: in.Renew, Wish: in.Wish,
		Holders: make(map[int]ownership.Holder, len(p.next.Slots)), Vacant: in.Vacant, Me: -1, Joins: in.Joins, Strategies: in.Strategies,
		Quarantined: p.quarantined,
	}
	if o.Strategies == nil {
		o.Strategies = placement.Named
	}
	if id, has := p.holds[p.in.Me]; has {
		o.Me = id
	}
	for _, epoch := range p.next.Quarantine.Epochs() {
		o.Unserved = o.Unserved || !p.in.Served[epoch]
	}
	for i := range p.in.Pods {
		pod := &p.in.Pods[i]
		id, has := p.holds[pod.Name]
		switch r := pod.Receipt; {
		case has && pod.locks() && r.ID == id && r.Partitions != nil:
			o.Holders[id] = ownership.Holder{Works: true, Locks: *r.Partitions, Yields: r.Yields, Paused: r.Paused}
		case has && pod.locks() && r.ID == id:
			o.Holders[id] = ownership.Holder{Unaware: true}
		case has:
			o.Holders[id] = ownership.Holder{}
		}
		if r := pod.Receipt; pod.locks() && r.Partitions != nil && (!has || r.ID != id) && (!clean || !p.lost(pod)) {
			o.Strays = append(o.Strays, *r.Partitions)
		}
	}
	p.partitions = ownership.Plan(o)
	p.next.Partitions = p.partitions.Next
}
