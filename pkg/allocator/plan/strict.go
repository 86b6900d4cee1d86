package plan

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// largestFenceAfter returns the largest fence-after in use: the planner's, those of live receipts, and the owner's.
//
// The owner's counts if idalloc wrote it. It also counts if somebody damaged that of a receipt, because nothing
// else tells then. In all other cases a value that somebody else wrote does not count: an hour would keep every new pod
// waiting, even if the workload does not use strict mode.
func largestFenceAfter(in Input) time.Duration {
	most := max(in.FenceAfter, largestInReceipts(in))
	if fenceAfterIsOurs(in) || hasDamagedFenceAfter(in) {
		most = max(most, in.State.FenceAfter)
	}
	return most
}

// fenceAfterIsOurs reports whether idalloc wrote the fence-after on the owner.
func fenceAfterIsOurs(in Input) bool { return in.Trust.Believed() || in.FenceOurs }

// hasDamagedFenceAfter reports whether somebody damaged the fence-after of a live receipt.
func hasDamagedFenceAfter(in Input) bool {
	return slices.ContainsFunc(in.Pods, func(p Pod) bool { return p.Receipt != nil && p.Receipt.FenceAfter < 0 })
}

// largestInReceipts returns the largest fence-after in live pods' receipts.
func largestInReceipts(in Input) time.Duration {
	most := time.Duration(0)
	for i := range in.Pods {
		if r := in.Pods[i].Receipt; r != nil {
			most = max(most, r.FenceAfter)
		}
	}
	return most
}

// lost reports whether the pod counts as lost in this plan. On a map that nobody tracks no pod does: there, a receipt is all that
// tells who acts. The planner runs, so it is not lost itself.
func (p *planner) lost(pod *Pod) bool {
	return pod.Lost && pod.MayBeLost() && pod.Name != p.in.Me && p.in.Trust != assignment.Untracked
}

// quarantine keeps slots free that a process without contact may still use. In a clean map these are the slots of holders
// that vanished, or are lost, without giving them. In any other map nobody knows who vanished, so they are all slots without a receipt.
//
// A sweep quarantines even if it knows of no fence-after, because it has none of its own. A pod that does not use strict
// mode disregards a quarantine.
func (p *planner) quarantine() {
	if p.fenceAfter == 0 && (p.in.Me != "" || fenceAfterIsOurs(p.in)) {
		return
	}
	if p.in.Trust != assignment.Clean {
		// Somebody may have brought back an old state, so every quarantine begins anew. An untracked map keeps its
		// quarantines: it never becomes clean, so they would never end otherwise.
		if p.in.Trust == assignment.Untracked {
			p.next.Quarantine = p.in.State.Quarantine
		}
		p.next.Quarantine = p.next.Quarantine.With(0, assignment.MaxID, p.epoch())
		return
	}
	p.next.Quarantine = p.in.State.Quarantine.Without(nil, func(s assignment.Span) bool { return p.in.Served[s.Epoch] })
	var vanished []int
	for _, f := range p.freed { // they are in slot order here, as WithEach needs them
		if f.Cause == CauseLost || ((f.Cause == CauseDead || f.Cause == CauseReplaced) && !p.in.Ended[f.ID]) {
			vanished = append(vanished, f.ID)
		}
	}
	if len(vanished) > 0 {
		p.next.Quarantine = p.next.Quarantine.WithEach(vanished, p.epoch())
	}
}

// quarantined reports whether nobody may have the slot yet.
func (p *planner) quarantined(id int) bool {
	epoch, ok := p.next.Quarantine.Since(id)
	return ok && !p.in.Served[epoch]
}

// settleStrict ends the quarantine of slots that have a holder, and sets the owner's fence-after. The fence-after goes
// down only if no quarantine and no holder may still need the larger one.
func (p *planner) settleStrict() {
	p.next.Quarantine = p.next.Quarantine.Without(p.held(), nil)
	_, has := p.holds[p.in.Me]
	switch {
	case len(p.next.Quarantine) > 0 || p.hasUnknownFenceAfter():
		p.next.FenceAfter = p.fenceAfter
	case has:
		p.next.FenceAfter = max(p.in.FenceAfter, largestInReceipts(p.in))
	default:
		p.next.FenceAfter = largestInReceipts(p.in) // the planner has no slot, so it needs no fence
	}
}

// hasUnknownFenceAfter reports whether there is a holder whose receipt does not say which fence-after it keeps to: it has
// not taken its slot yet, or somebody changed the receipt and the pod has not heard of it. The planner's own fence-after
// is known if its entry is new.
func (p *planner) hasUnknownFenceAfter() bool {
	for id, name := range p.next.Slots {
		pod := p.pods[name]
		if (name != p.in.Me || p.in.State.Slots[id] == name) && (!pod.locks() || pod.Receipt.ID != id || pod.Receipt.FenceAfter < 0) {
			return true
		}
	}
	return false
}

// held returns the slots that have a holder, in ascending order. These are the slots with an entry, and in a map that is
// not clean also the slots that one live pod's receipt names. A slot that several receipts name does not count: nobody
// knows which of those pods acts, and since the map does not name that pod any more, its own deadline runs.
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
