package plan

import "github.com/idalloc/idalloc/pkg/allocator/assignment"

// keepRequests carries over the hand-over requests that can still be met: of a clean map, below N,
// by a live waiter (rule 2).
func (p *planner) keepRequests() {
	if !p.in.Clean {
		return
	}
	for id, name := range p.in.State.Handover {
		pod, alive := p.pods[name]
		_, has := p.holds[name]
		if !alive || pod.Terminating || has || id >= p.in.Count {
			continue
		}
		if p.next.Handover == nil {
			p.next.Handover = assignment.Slots{}
		}
		p.next.Handover[id] = name
	}
}

// serveRequests gives each free slot that is asked for to its requester (rule 3). Making requests
// (rule 6) is not in this version; this serves those that a newer one makes.
func (p *planner) serveRequests() {
	for _, id := range p.next.Handover.IDs() {
		if pod := p.pods[p.next.Handover[id]]; p.free(id, pod) {
			p.assign(id, pod)
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
