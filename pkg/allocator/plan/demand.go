package plan

// mustMakeWay reports whether the pod must leave free slots to other pods. Nobody makes way unless live pods outnumber N. A
// pod whose program failed makes way for pods of other revisions that gave their slots up and did not fail. A pod that gave
// its slot up makes way for every other pod that may want the slot, unless it is of the current revision.
func (p *planner) mustMakeWay(pod *Pod) bool {
	switch {
	case p.live <= p.in.Count, p.in.TakeReserved && pod.Name == p.in.Me:
		return false
	case pod.failed() && p.demand.madeRoomFor(pod):
		return true
	}
	return pod.gaveUp() && !p.in.Rollout.Current && p.demand.existsBeside(pod)
}

// demand counts the pods that want a slot and whose programs have not failed.
type demand struct {
	// neverGave is the number of those that gave no slot up.
	neverGave int
	// gaveUp is the number of those that gave a slot up. gaveUpBy counts them by controller.
	gaveUp   int
	gaveUpBy map[string]int
}

// MadeRoom reports whether a pod of another revision than me's has given its slot up, waits, and has not failed.
// me is the name of one of the pods.
func MadeRoom(pods []Pod, me string) bool {
	p := newPlanner(Input{Pods: pods, Me: me}, unbounded)
	pod, ok := p.pods[me]
	return ok && p.countDemand().madeRoomFor(pod)
}

func (p *planner) countDemand() demand {
	d := demand{gaveUpBy: map[string]int{}}
	for i := range p.in.Pods {
		pod := &p.in.Pods[i]
		if _, has := p.holds[pod.Name]; has || !pod.Owned || pod.Terminating || pod.locks() || pod.failed() {
			continue
		}
		if !pod.gaveUp() {
			d.neverGave++
			continue
		}
		d.gaveUpBy[pod.Controller]++
		d.gaveUp++
	}
	return d
}

// madeRoomFor reports whether a pod of another revision has given its slot up and waits.
func (d demand) madeRoomFor(pod *Pod) bool { return d.gaveUp > d.gaveUpBy[pod.Controller] }

// existsBeside reports whether any pod wants a slot, apart from this pod and its siblings that gave a slot up as it did.
func (d demand) existsBeside(pod *Pod) bool { return d.neverGave > 0 || d.madeRoomFor(pod) }

// openSlots counts the slots below N that no live pod holds or locks. Slots in quarantine count, because they come free
// by themselves.
func (p *planner) openSlots() int {
	n := p.in.Count
	for id := range p.next.Slots {
		if id < p.in.Count {
			n--
		}
	}
	for id := range p.locks {
		if _, taken := p.next.Slots[id]; !taken && id < p.in.Count {
			n--
		}
	}
	return n
}

// podsWithoutSlot counts the pods of all revisions that have no slot and might want one.
func (p *planner) podsWithoutSlot() int {
	n := 0
	for i := range p.in.Pods {
		pod := &p.in.Pods[i]
		_, has := p.holds[pod.Name]
		if !has && pod.Owned && !pod.Terminating && (pod.Name != p.in.Me || p.in.Intent != Release) {
			n++
		}
	}
	return n
}
