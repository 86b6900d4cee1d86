package plan

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// fence is the largest fence-after in use: me's, that of a live pod, or what stands on the owner.
func fence(in Input) time.Duration {
	most := max(in.FenceAfter, receipts(in))
	if trusted(in) || garbled(in) {
		most = max(most, in.State.FenceAfter)
	}
	return most
}

// trusted reports whether what stands on the owner as fence-after is idalloc's.
func trusted(in Input) bool { return in.Trust.Believed() || in.FenceOurs }

// garbled reports whether a live receipt has a fence-after that somebody made unreadable: then what stands on the owner is all
// that is known of it. Without one, what somebody else wrote there counts for nothing: an hour would keep every new pod
// of a workload waiting that may not even use strict mode.
func garbled(in Input) bool {
	return slices.ContainsFunc(in.Pods, func(p Pod) bool { return p.Receipt != nil && p.Receipt.FenceAfter < 0 })
}

func receipts(in Input) time.Duration {
	most := time.Duration(0)
	for i := range in.Pods {
		if r := in.Pods[i].Receipt; r != nil {
			most = max(most, r.FenceAfter)
		}
	}
	return most
}

// quarantine keeps free what may still be in use by a process that was cut off: the slot of a holder
// that vanished without giving it; and where the map is not clean, so that nobody knows who vanished,
// every slot without a receipt. A sweep does so also where it knows of no fence-after: it has none of its own, and a pod
// without strict mode passes over a quarantine.
func (p *planner) quarantine() {
	if p.fence == 0 && (p.in.Me != "" || trusted(p.in)) {
		return
	}
	if p.in.Trust != assignment.Clean {
		// What stands there may be an old state that somebody brought back, so it begins anew. Where
		// nothing is tracked, no map is ever clean: what is served is kept with its epoch.
		if p.in.Trust == assignment.Untracked {
			p.next.Quarantine = p.in.State.Quarantine
		}
		p.next.Quarantine = p.next.Quarantine.With(0, assignment.MaxID, p.epoch())
		return
	}
	p.next.Quarantine = p.in.State.Quarantine.Without(nil, func(s assignment.Span) bool { return p.in.Served[s.Epoch] })
	var vanished []int
	for _, f := range p.freed { // in slot order, as far as holders are dead
		if (f.Cause == CauseDead || f.Cause == CauseReplaced) && !p.in.Ended[f.ID] {
			vanished = append(vanished, f.ID)
		}
	}
	if len(vanished) > 0 {
		p.next.Quarantine = p.next.Quarantine.WithEach(vanished, p.epoch())
	}
}

// quarantined reports whether a slot may not be given yet.
func (p *planner) quarantined(id int) bool {
	epoch, ok := p.next.Quarantine.Since(id)
	return ok && !p.in.Served[epoch]
}

// dismiss takes the slots that have a holder out of quarantine, and notes what the others must obey.
// The owner's fence-after comes down only when nothing is left that it was written for.
func (p *planner) dismiss() {
	p.next.Quarantine = p.next.Quarantine.Without(p.held(), nil)
	_, has := p.holds[p.in.Me]
	switch {
	case len(p.next.Quarantine) > 0 || p.unlocked():
		p.next.FenceAfter = p.fence
	case has:
		p.next.FenceAfter = max(p.in.FenceAfter, receipts(p.in))
	default:
		p.next.FenceAfter = receipts(p.in) // a pod without a slot has nothing to be fenced
	}
}

// unlocked reports whether an entry, but one that is new to me, has no receipt that says which fence-after
// its pod obeys: the pod has not taken it yet, or somebody changed the receipt and the pod has not heard of that.
func (p *planner) unlocked() bool {
	for id, name := range p.next.Slots {
		pod := p.pods[name]
		if (name != p.in.Me || p.in.State.Slots[id] == name) && (!pod.locks() || pod.Receipt.ID != id || pod.Receipt.FenceAfter < 0) {
			return true
		}
	}
	return false
}

// held returns the slots that have a holder, in ascending order: those with an entry, and where the map is not clean, those
// with a live pod's receipt. A slot with several receipts has none: which of those pods acts is not known, and that one is
// not named any more, so its own deadline runs.
func (p *planner) held() []int {
	all := make(assignment.Slots, len(p.next.Slots))
	for id := range p.next.Slots {
		all[id] = ""
	}
	if p.in.Trust != assignment.Clean {
		for id, by := range p.locks {
			if by != contested {
				all[id] = ""
			}
		}
	}
	return all.IDs()
}
