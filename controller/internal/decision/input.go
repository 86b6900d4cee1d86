package decision

import (
	"maps"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// input returns what the plan sees. A running pod locks its id, even if its receipt was changed. A pod that cannot take anything is left out. Locks that T3
// showed are included, because otherwise the plan would propose again what T3 refused.
func (v *view) input() proposal.Input {
	o := v.w.Owner
	in := proposal.Input{
		Count: o.Count, State: v.state(), Room: o.Room, Now: v.w.Now, Central: true, Revision: o.Revision,
		Rollout:    proposal.Rollout{Current: o.Replaces && o.Revision != "", MaxUnavailable: o.MaxUnavailable},
		Partitions: v.division(), FreeFor: v.w.FreeFor,
	}
	spare := v.spare()
	for _, p := range v.pods {
		if p.Refused && !p.begun && !p.Receipt.Locked() {
			if spare--; spare < 0 {
				continue
			}
		}
		q := p.Pod.Pod
		q.Central = p.Agent
		switch q.Gated = p.canTake(); {
		case p.begun:
			q.Receipt.State, q.Receipt.Share = receipt.Locks, receipt.Share{ID: p.id}
		case p.Assigned && !q.Gated && !q.Receipt.Locked():
			continue
		}
		if v.current(p) && v.available(p) {
			in.Rollout.Available++
		}
		in.Pods = append(in.Pods, q)
	}
	for _, l := range v.w.Locks {
		if id := l.Receipt.Slot(); v.named[l.Pod] == nil && id != receipt.NoID { // a former owner still has the pod, and only T3 shows it
			in.Pods = append(in.Pods, proposal.Pod{
				Name: l.Pod, UID: l.UID, Ordinal: proposal.NoOrdinal, Receipt: receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: id}},
			})
		}
	}
	return in
}

// division returns how the controller divides partitions. Without agents it leaves them unchanged, and drops them if the pods that divided them have been
// replaced by gated pods: no plan of a peer would.
func (v *view) division() proposal.Division {
	o := v.w.Owner
	return proposal.Division{
		Wish: o.Wish, Vacant: v.w.Vacant, AtOnce: !o.Wish.HasFailoverAfter && !o.RollsNow, Joins: v.w.Joins, Gathers: v.w.Gathers,
		Unchanged: !slices.ContainsFunc(v.pods, func(p *pod) bool { return p.Agent }),
		Ends:      len(v.pods) > 0 && !slices.ContainsFunc(v.pods, func(p *pod) bool { return !p.Assigned || p.Receipt.Share.Of > 0 }),
	}
}

// spare returns how many slots are left when each pod that can be written has one. It is negative if there are too few slots.
func (v *view) spare() int {
	held, waiting := map[int]bool{}, 0
	for _, p := range v.pods {
		id, has := v.holds(p)
		switch {
		case p.Refused && !p.begun && !p.Receipt.Locked():
		case has && id < v.w.Owner.Count:
			held[id] = true
		case !has && p.Owned && !p.Terminating && (p.canTake() || p.Receipt.State == receipt.Waits):
			waiting++
		}
	}
	return v.w.Owner.Count - len(held) - waiting
}

// failing reports whether the plan changes the map only for pods whose programs failed. These give ids up and take others without end, and one write can serve
// all of them.
func (v *view) failing() bool {
	plan := v.d.Plan
	if plan.Next == nil || plan.Partitions.Changed || !maps.Equal(plan.Next.Handover, v.w.Owner.State.Handover) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(plan.Freed, plan.Filled), func(c proposal.Change) bool {
		p := v.named[c.Pod]
		return p == nil || p.Receipt.Failures() == 0
	})
}

// state returns the owner's state without entries and requests that give a pod another slot than its ordinal. Such entries were written by hand, or are of an
// earlier pod of that name. A pod that begins with such an id would keep it.
func (v *view) state() assignment.State {
	out, misled := v.w.Owner.State, map[string]int{}
	wrong := func(p *pod, id int) bool {
		return p != nil && !p.Receipt.Locked() && p.Ordinal >= 0 && p.Ordinal < v.w.Owner.Count && id != p.Ordinal
	}
	held := map[int]bool{}
	for _, p := range v.pods {
		id, named := v.ids[p.Name]
		if held[p.id] = true; named && p.canTake() && wrong(p, id) {
			misled[p.Name] = id
		}
	}
	out.Handover = v.requests()
	// The plan requests no free slot. It may request a slot of another ordinal if its holder should go.
	maps.DeleteFunc(out.Handover, func(id int, by string) bool { return !held[id] && wrong(v.named[by], id) })
	if len(misled) == 0 {
		return out
	}
	slots := maps.Clone(out.Slots)
	for _, p := range v.pods {
		has := out.Slots[p.Ordinal]
		stays := v.named[has] != nil
		if _, also := misled[has]; !stays || also {
			if id, is := misled[p.Name]; is {
				delete(slots, id)
			}
		}
	}
	out.Slots = slots
	return out
}

// requests returns the owner's requests, without those for slots of agents that sound rejects.
func (v *view) requests() assignment.Slots {
	all := maps.Clone(v.w.Owner.State.Handover)
	for _, p := range v.pods {
		id := p.Receipt.Slot()
		if by := all[id]; by != "" && v.listens(p) && !v.sound(by, p) {
			delete(all, id)
		}
	}
	return all
}

// sound reports whether the pod named by should get the slot of agent p. It must be alive, owned and waiting. And it must be of the current revision while p is
// not, or p must be condemned. No other request in the map stops work.
func (v *view) sound(by string, p *pod) bool {
	q := v.named[by]
	if q == nil || !q.Owned || q.Terminating || v.has(q) || q.Receipt.State != receipt.Waits && !q.canTake() {
		return false
	}
	return v.w.Owner.Replaces && v.current(q) && !v.current(p) || p.Condemned && !q.Condemned
}
