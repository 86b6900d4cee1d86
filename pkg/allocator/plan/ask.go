package plan

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// keepRequests carries over the hand-over requests that can still be met (rule 2). Only a clean map has any. The slot
// must be below N, and the requester must be a live waiter. A pod whose receipt locks a slot does not wait for another.
// A planner of the current revision also drops the requests of other revisions: after a rollback they would move slots
// in the wrong direction.
func (p *planner) keepRequests() {
	if p.in.Trust != assignment.Clean {
		return
	}
	for id, name := range p.in.State.Handover {
		pod, alive := p.pods[name]
		_, has := p.holds[name]
		if !alive || pod.Terminating || has || pod.locks() || id >= p.in.Count || p.outdated(pod) {
			continue
		}
		if p.next.Handover == nil {
			p.next.Handover = assignment.Slots{}
		}
		p.next.Handover[id] = name
	}
}

// outdated reports whether the planner knows that the requester is not of the current revision.
func (p *planner) outdated(requester *Pod) bool {
	me, ok := p.pods[p.in.Me]
	return ok && p.in.Rollout.Current && requester.Controller != me.Controller
}

// serveRequests gives each free slot that a pod asked for to that pod (rule 3).
func (p *planner) serveRequests() {
	for _, id := range p.next.Handover.IDs() {
		if pod := p.pods[p.next.Handover[id]]; p.free(id, pod) && p.add(id, pod) {
			delete(p.next.Handover, id)
		}
	}
}

// dropMet drops the requests of pods that have another slot by now (rule 2).
func (p *planner) dropMet() {
	for id, name := range p.next.Handover {
		if _, has := p.holds[name]; has {
			delete(p.next.Handover, id)
		}
	}
}

// ask asks older revisions' pods for their slots, for the planner and for siblings that have shown life (rule 6). An old
// pod's work is stopped for that, so only a pod whose program runs may cause it.
//
// Three things count as hand-overs under way: requests; siblings that hold a slot, have shown life, and are not available
// yet; and older pods that are about to be gone. So a revision that does not work does not collect every id. A sibling
// that has not shown life took its slot from nobody, so it does not count. A Terminating planner asks for nobody.
func (p *planner) ask() {
	me, ok := p.pods[p.in.Me]
	if !ok || me.Terminating || p.in.Trust != assignment.Clean || !p.in.Rollout.Current || p.in.Intent == Release {
		return
	}
	if _, has := p.holds[me.Name]; has {
		return
	}
	able := p.able(me)
	p.handOver.Able, p.handOver.Limit = len(able), max(1, p.in.Rollout.MaxUnavailable)
	p.handOver.UnderWay = len(p.next.Handover) + max(0, p.siblingsWithSlot(me)-p.in.Rollout.Available) + p.leaving(me)
	asking := make(map[string]bool, len(p.next.Handover))
	for _, name := range p.next.Handover {
		asking[name] = true
	}
	for _, pod := range p.askers(me) {
		if pod.Ordinal != NoOrdinal || asking[pod.Name] {
			continue
		}
		if len(able) == 0 || p.handOver.UnderWay >= p.handOver.Limit || !p.takeRoom() {
			return
		}
		if p.next.Handover == nil {
			p.next.Handover = assignment.Slots{}
		}
		id := able[0]
		able = able[1:]
		p.next.Handover[id] = pod.Name
		p.handOver.UnderWay++
		p.handOver.Asked = append(p.handOver.Asked, Change{ID: id, Pod: pod.Name})
	}
}

// askers returns the pods for which another pod's work may be stopped, the planner first. A planner whose program failed
// waits longer after each failure. After that wait it may ask, even while it must leave free slots to other pods.
func (p *planner) askers(me *Pod) []*Pod {
	waiting, reserved := p.waiting, p.makingWay
	askers := p.knownToRun(p.waiters())
	p.waiting, p.makingWay = waiting, reserved // serveWaiters has counted them
	if at := slices.Index(askers, me); at >= 0 {
		askers = slices.Delete(askers, at, at+1)
	}
	if p.in.StandsBack || !me.Owned {
		return askers
	}
	return slices.Insert(askers, 0, me)
}

// able returns the slots that can be asked for, the highest first, because Kubernetes ends those pods first.
func (p *planner) able(me *Pod) []int {
	var ids []int
	for id, name := range p.next.Slots {
		pod := p.pods[name]
		if pod.Controller == me.Controller || id >= p.in.Count || !pod.Owned { // a relabelled pod keeps its slot
			continue
		}
		p.handOver.Older++
		_, asked := p.next.Handover[id]
		if !pod.Terminating && !asked && pod.locks() && pod.Receipt.ID == id && pod.Receipt.HandsOver {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

// leaving counts the slots of older pods that are within their grace period: these slots come free by themselves. A pod
// that outlives its grace period may be on a node that is down, so it does not count.
func (p *planner) leaving(me *Pod) int {
	n := 0
	for id, name := range p.next.Slots {
		pod := p.pods[name]
		_, asked := p.next.Handover[id]
		if pod.Controller != me.Controller && pod.Terminating && id < p.in.Count && !asked && p.in.Now.Before(pod.Deadline) {
			n++
		}
	}
	return n
}

// siblingsWithSlot counts the siblings that hold a slot and have shown life.
func (p *planner) siblingsWithSlot(me *Pod) int {
	n := 0
	for _, name := range p.next.Slots {
		if pod := p.pods[name]; pod.Controller == me.Controller && !pod.Terminating && pod.showsLife() {
			n++
		}
	}
	return n
}
