package proposal

import (
	"maps"
	"slices"
)

// keepRequests carries over the requests that can still be met (rule 3). After a rollback, requests of the other revision would move slots in the wrong
// direction.
func (p *planner) keepRequests() {
	for id, name := range p.in.State.Handover {
		pod := p.pods[name]
		if id < p.in.Count && p.waits(pod) && !pod.Condemned && !p.stays(id, pod) && (p.me == nil && !p.in.Central || !p.in.Rollout.Current || p.sibling(pod)) {
			p.next.Handover[id] = name
		}
	}
}

// stays reports whether the pod that has the slot keeps it: it is a sibling of the other pod, and Kubernetes will not remove it.
func (p *planner) stays(id int, other *Pod) bool {
	holder := p.pods[p.next.Slots[id]]
	return holder != nil && !holder.Condemned && holder.Controller != "" && holder.Controller == other.Controller
}

// serveRequests gives each requested free slot to its requester (rule 3).
func (p *planner) serveRequests() {
	for _, id := range p.next.Handover.IDs() {
		if pod := p.pods[p.next.Handover[id]]; p.free(id) && p.waits(pod) {
			p.add(id, pod)
		}
	}
}

// dropRequests drops the requests of pods that now have a slot.
func (p *planner) dropRequests() {
	maps.DeleteFunc(p.next.Handover, func(_ int, name string) bool {
		_, has := p.holds[name]
		return has
	})
}

// goes reports whether the pod may be asked for its slot: it is of an older revision than the planner, or condemned.
func (p *planner) goes(pod *Pod) bool {
	return p.in.Rollout.Current && !p.sibling(pod) || pod.Condemned && (p.me == nil || !p.me.Condemned)
}

// ask asks pods that may be asked for their slots, on behalf of the planner and of siblings that are known to run (rule 6). The controller asks for gated
// pods. Each request stops a pod's work. A planner whose program failed asks when its time has come, even while it leaves free slots to other pods.
func (p *planner) ask() {
	if !p.waits(p.me) && !p.in.Central || !p.in.Rollout.Current && !slices.ContainsFunc(p.alive, p.goes) {
		return
	}
	h := &p.d.HandOver
	able := p.survey()
	asking := make(map[string]bool, len(p.next.Handover))
	for _, name := range p.next.Handover {
		asking[name] = true
	}
	askers := slices.DeleteFunc(p.waiters(), func(pod *Pod) bool {
		return !p.sibling(pod) || pod.Condemned || p.bound(pod) || asking[pod.Name] || p.doubt(pod) > 1 || (pod == p.me && p.in.StandsBack)
	})
	slices.SortStableFunc(askers, func(a, b *Pod) int { return p.doubt(a) - p.doubt(b) })
	for _, pod := range askers {
		if len(able) == 0 || h.UnderWay >= h.Limit || p.left == 0 {
			return
		}
		p.left--
		at := max(0, slices.Index(able, pod.Ordinal)) // the slot of its ordinal, or else the first one
		p.next.Handover[able[at]] = pod.Name
		h.UnderWay++
		h.Asked = append(h.Asked, Change{ID: able[at], Pod: pod.Name})
		able = slices.Delete(able, at, at+1)
	}
}

// survey returns the slots that can be asked for, the highest first, because Kubernetes ends those pods first. A relabelled pod keeps its slot.
//
// Three things count as hand-overs under way: requests; siblings that have a slot, have shown life, and are not available yet; and older pods within their
// grace period, because their slots come free by themselves. So a broken revision does not collect every id. A sibling that has not shown life took its
// slot from no pod, so it does not count. Siblings of a StatefulSet do not count either, because it starts a pod when the one before it is Ready.
func (p *planner) survey() (able []int) {
	h := &p.d.HandOver
	starting, leaving := -p.in.Rollout.Available, 0
	for id, name := range p.next.Slots {
		pod := p.pods[name]
		switch {
		case !p.goes(pod) && p.in.Rollout.Current && !pod.Terminating && pod.showsLife():
			starting++
			continue
		case !p.goes(pod) || id >= p.in.Count:
			continue
		}
		if pod.Owned {
			h.Older++
		}
		_, asked := p.next.Handover[id]
		switch {
		case asked:
		case pod.Terminating && !pod.overdue(p.in.Now):
			leaving++
		case !pod.Terminating && pod.Owned && pod.Receipt.HandsOver && pod.Receipt.Slot() == id:
			able = append(able, id)
		}
	}
	slices.SortFunc(able, func(a, b int) int { return b - a })
	h.Able, h.Limit = len(able), max(1, p.in.Rollout.MaxUnavailable)
	h.UnderWay = len(p.next.Handover) + max(0, starting) + leaving
	return able
}
