package proposal

import (
	"cmp"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// Reserved returns how long a waiter of this rank leaves a free slot to pods of lower ranks. It is finite, because after a stuck rollout is scaled down, a
// pod that gave its slot up may be the only one that works. By then no other pod has wanted the slot, so slots do not go back and forth.
func Reserved(rank int) time.Duration {
	if rank <= gaveUp {
		return 10 * time.Second
	}
	return time.Minute
}

// wants reports whether the pod has no slot and wants one, now or soon. A pod that gave up will soon wait. A pod that locks a slot that others also lock
// first releases it.
func (p *planner) wants(pod *Pod) bool {
	_, has := p.holds[pod.Name]
	return !has && pod.Owned && !pod.Terminating && !pod.Receipt.Locked()
}

// waits reports whether the pod may be given a slot.
func (p *planner) waits(pod *Pod) bool {
	return pod != nil && p.wants(pod) && pod.Receipt.State != receipt.GaveUp
}

// sibling reports whether the pod is the planner's own, or has the same controller. The controller's siblings are the pods of the current revision.
func (p *planner) sibling(pod *Pod) bool {
	if p.in.Central {
		return pod.Controller != "" && pod.Controller == p.in.Revision
	}
	return p.me != nil && (pod == p.me || (pod.Controller != "" && pod.Controller == p.me.Controller))
}

// rank returns the pod's rank for this planner. Pods of the current revision take a slot back at once. If the planner is not of that revision, pods of
// other controllers may be.
func (p *planner) rank(pod *Pod) int {
	if rank := pod.rank(); rank != gaveUp || p.sibling(pod) != p.in.Rollout.Current {
		return rank
	}
	return neverGave
}

// leaves reports whether the waiter must leave free slots to pods of lower ranks. Only the planner knows how long a slot has been free.
func (p *planner) leaves(pod *Pod) bool {
	rank := p.rank(pod)
	if p.d.Live <= p.in.Count || (pod == p.me || pod.Central) && p.in.FreeFor >= Reserved(rank) {
		return false
	}
	return slices.ContainsFunc(p.wanting[:rank], func(pods int) bool { return pods > 0 })
}

// MadeRoom reports whether a pod of a revision other than me's has given its slot up without a failure and wants one. me is the name of one of the pods.
func MadeRoom(pods []Pod, me string) bool {
	p := newPlanner(Input{Pods: pods, Me: me}, unbounded)
	return p.me != nil && slices.ContainsFunc(p.alive, func(pod *Pod) bool {
		return !p.sibling(pod) && p.wants(pod) && pod.rank() == gaveUp
	})
}

// serveWaiters gives free slots to the planner and its siblings (rules 4 and 5). Pods of another revision plan for themselves, because they
// may not even run idalloc.
func (p *planner) serveWaiters() {
	wanting := 0
	for _, pod := range p.alive {
		if p.wants(pod) {
			p.wanting[p.rank(pod)]++
			wanting++
		}
	}
	p.d.Scarce = p.open < wanting
	// A planner that leaves a slot belongs to the revision that makes room, and so do its siblings. A slot given to one of them would be handed over a
	// moment later, and one more pod would start and stop for nothing.
	makesRoom := p.waits(p.me) && p.leaves(p.me)
	leaving := 0
	for _, pod := range p.waiters() {
		switch {
		case p.leaves(pod):
			leaving++
			p.d.Waiting++
		case makesRoom || p.isBehind(pod) || !p.serve(pod):
			p.d.Waiting++
		}
	}
	p.d.Reserved = min(leaving, p.open)
}

// isBehind reports whether a gated pod leaves free slots to a pod of the current revision that takes its own slot and whose program failed. That pod takes
// such a slot when its time has come. Otherwise the controller would remove the gated pod for it as soon as the gated pod had the slot, and then the next
// one.
func (p *planner) isBehind(pod *Pod) bool {
	return p.in.Central && pod.Gated && p.in.Rollout.Current && !p.sibling(pod) && slices.ContainsFunc(p.alive, func(other *Pod) bool {
		return p.sibling(other) && !other.Gated && other.showsLife() && p.wants(other)
	})
}

// waiters returns the waiting pods among the planner and its siblings, in the order in which they get slots: by rank, then those with an ordinal, then by
// age. The controller's waiters are those of the current revision first, and then all for which it plans. A condemned gated pod is not a waiter: it could
// not hand the slot over to the pod of that ordinal. If slots or room are scarce, pods that are known to run come before older ones: an entry for a pod
// that never starts would be useless until the pod is gone.
func (p *planner) waiters() []*Pod {
	waiters := make([]*Pod, 0, len(p.alive))
	for _, pod := range p.alive {
		if (p.sibling(pod) || p.in.Central && (pod.Gated || pod.Central)) && p.waits(pod) && (!pod.Gated || !pod.Condemned) {
			waiters = append(waiters, pod)
		}
	}
	later := func(pod *Pod) int {
		if p.sibling(pod) {
			return 0
		}
		return 1
	}
	class := func(pod *Pod) (class int) {
		bound := p.bound(pod)
		if !bound {
			class = 1
		}
		if p.most < unbounded || (p.d.Scarce && !bound) {
			class += 2 * p.doubt(pod)
		}
		return class
	}
	slices.SortFunc(waiters, func(a, b *Pod) int {
		return cmp.Or(later(a)-later(b), p.rank(a)-p.rank(b), class(a)-class(b), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return waiters
}

// doubt returns how doubtful it is that the pod's program runs. The planner's runs. So a planner asks for itself first: an older sibling that cannot be
// scheduled would get the slot of a pod that works.
func (p *planner) doubt(pod *Pod) int {
	switch {
	case pod == p.me:
		return 0
	case pod.runs() || pod.StoodBack:
		return 1
	}
	return 2
}

// bound reports whether the pod waits for the slot of its ordinal. It takes another slot if a pod that stays has that one, which happens after a user
// raises a Job's parallelism, or changes the start of a StatefulSet's ordinals.
func (p *planner) bound(pod *Pod) bool {
	if pod.Ordinal < 0 || pod.Ordinal >= p.in.Count {
		return false
	}
	holder := p.pods[p.next.Slots[pod.Ordinal]]
	return holder == nil || holder.Terminating
}

// serve gives the waiter a slot. It returns false if there is no slot for it, or no room for the entry.
func (p *planner) serve(pod *Pod) bool {
	id := pod.Ordinal
	if !p.bound(pod) {
		if p.d.Scarce && p.doubt(pod) > 1 && (!pod.Central || !pod.showsLife()) { // pods whose programs failed come last
			return false
		}
		for p.lowest < p.in.Count && !p.free(p.lowest) {
			p.lowest++
		}
		id = p.lowest
	}
	if id >= p.in.Count || !p.free(id) || !p.add(id, pod) {
		return false
	}
	p.wanting[p.rank(pod)]--
	return true
}
