package plan

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// keepRequests carries over the hand-over requests that can still be met: of a clean map, below N,
// by a live waiter (rule 2); a pod that locks a slot does not wait for another one. A pod of the current revision knows better than another one's requests:
// after a rollback they would move slots in the wrong direction.
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

func (p *planner) outdated(requester *Pod) bool {
	me, ok := p.pods[p.in.Me]
	return ok && p.in.Rollout.Current && requester.Controller != me.Controller
}

// serveRequests gives each free slot that is asked for to its requester (rule 3).
func (p *planner) serveRequests() {
	for _, id := range p.next.Handover.IDs() {
		if pod := p.pods[p.next.Handover[id]]; p.free(id, pod) && p.add(id, pod) {
			delete(p.next.Handover, id)
		}
	}
}

// dropMet drops the requests of pods that got another slot meanwhile (rule 2).
func (p *planner) dropMet() {
	for id, name := range p.next.Handover {
		if _, has := p.holds[name]; has {
			delete(p.next.Handover, id)
		}
	}
}

// ask asks older revisions' pods for their slots, for me and the siblings that have shown life (rule 6): an old pod's work is
// stopped for it. Hand-overs under way are the requests, and siblings that hold a slot, have shown life and are not
// available yet: a revision that does not get to work does not collect every id. One that has not shown life took its slot from
// nobody. A Terminating pod does not wait, and asks for nobody.
func (p *planner) ask() {
	me, ok := p.pods[p.in.Me]
	if !ok || me.Terminating || p.in.Trust != assignment.Clean || !p.in.Rollout.Current || p.in.Intent == Release {
		return
	}
	if _, has := p.holds[me.Name]; has {
		return
	}
	able := p.able(me)
	p.asking.Able, p.asking.Limit = len(able), max(1, p.in.Rollout.MaxUnavailable)
	p.asking.UnderWay = len(p.next.Handover) + max(0, p.siblingsWithSlot(me)-p.in.Rollout.Available) + p.leaving(me)
	asking := make(map[string]bool, len(p.next.Handover))
	for _, name := range p.next.Handover {
		asking[name] = true
	}
	for _, pod := range p.askers(me) {
		if pod.Ordinal != NoOrdinal || asking[pod.Name] {
			continue
		}
		if len(able) == 0 || p.asking.UnderWay >= p.asking.Limit || !p.room() {
			return
		}
		if p.next.Handover == nil {
			p.next.Handover = assignment.Slots{}
		}
		id := able[0]
		able = able[1:]
		p.next.Handover[id] = pod.Name
		p.asking.UnderWay++
		p.asking.Asked = append(p.asking.Asked, Change{ID: id, Pod: pod.Name})
	}
}

// askers returns those for whom another pod's work may be stopped, me first. One whose program failed waits longer and longer before that, but
// then it may, also while it must leave free slots to others.
func (p *planner) askers(me *Pod) []*Pod {
	wait, barred := p.wait, p.barred
	askers := p.alive(p.waiters())
	p.wait, p.barred = wait, barred // they are counted already
	if at := slices.Index(askers, me); at >= 0 {
		askers = slices.Delete(askers, at, at+1)
	}
	if p.in.StandsBack || !me.Owned {
		return askers
	}
	return slices.Insert(askers, 0, me)
}

// able returns the slots that can be asked for, the highest first: Kubernetes ends those pods first.
func (p *planner) able(me *Pod) []int {
	var ids []int
	for id, name := range p.next.Slots {
		pod := p.pods[name]
		if pod.Controller == me.Controller || id >= p.in.Count || !pod.Owned { // a relabelled pod keeps its slot
			continue
		}
		p.asking.Older++
		_, asked := p.next.Handover[id]
		if !pod.Terminating && !asked && pod.locks() && pod.Receipt.ID == id && pod.Receipt.HandsOver {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

// leaving counts the slots that come free by themselves, because their older pods are within their grace
// period. One that outlives it may be on a node that is down, and keeps nobody from asking.
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

func (p *planner) siblingsWithSlot(me *Pod) int {
	n := 0
	for _, name := range p.next.Slots {
		if pod := p.pods[name]; pod.Controller == me.Controller && !pod.Terminating && pod.showsLife() {
			n++
		}
	}
	return n
}
