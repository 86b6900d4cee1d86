package planner

import (
	"fmt"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/source"
	"github.com/idalloc/idalloc/pkg/allocator/work"
)

// WayOut is the advice for a rolling update whose old pods do not hand over.
const WayOut = "set maxSurge: 0 with maxUnavailable: 1 or more, or let the pods hand over: idalloc run, a linked program, " +
	"or idalloc watch with --drain-exec or --drain=http"

// outlivesGrace explains why the slot of a pod that has outlived its grace period does not come free, and what to do.
const outlivesGrace = "being deleted, grace period over, not gone, so its node may be down; without strict mode no other pod can have the slot " +
	"before the pod is gone: bring the node back, or, if it will not come back, taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute " +
	"or delete the Node object"

// Reason explains why this pod has no slot.
func (p *Planner) Reason(lease string) source.Reason {
	d := p.plans.decision
	return source.Reason{Text: p.reason(lease), Live: d.Live, Waiting: d.Waiting}
}

// reason returns the text of Reason.
func (p *Planner) reason(lease string) string {
	s, owner := p.o.Process.State(), p.view.owner
	switch {
	case p.view.state == gone:
		return fmt.Sprintf("%s in namespace %s to exist, or for another workload to own this pod", s.Owner, s.Owner.Namespace)
	case owner.Count == 0:
		return fmt.Sprintf("the count to grow: %s is scaled to 0", owner.Ref)
	case lease != "":
		return lease
	case !p.plans.made:
		return fmt.Sprintf("a first plan for %s", owner.Ref)
	}
	return p.whyNot(s.Receipt())
}

// whyNot explains why the last plan gave this pod no slot.
func (p *Planner) whyNot(r receipt.Receipt) string {
	owner, d := p.view.owner, p.plans.decision
	live := fmt.Sprintf("%d pods live, %d wait", d.Live, d.Waiting)
	kept := whoOutlives(d)
	switch h := d.HandOver; d.WhyNot {
	case proposal.WhyNoRoom:
		return fmt.Sprintf("room on %s: %s; %s", owner.Ref, d.TooLarge.Error(), live)
	case proposal.WhyAsked:
		requests := owner.Record.State.Handover
		if d.Next != nil {
			requests = d.Next.Handover
		}
		if id, asks := requests.Of(p.o.Pod); asks {
			return fmt.Sprintf("the hand-over of slot %d: %s was asked for it and gives it when its work has stopped; if that takes long, look whether that pod has contact with "+
				"the API server (its log, idalloc verify); the slot comes free when the pod is deleted", id, owner.Record.State.Slots[id])
		}
	case proposal.WhyFailed:
		failed := r.Failures()
		return fmt.Sprintf("a later try: this pod's program ended by itself within %s after it had got a slot (failures in a row: %d); while %d pods live for %d slots, "+
			"those that gave theirs up go first, and no other pod's work is stopped for this one before it has run for %s: look at its log, repair or undo the rollout",
			work.ProvenAfter, failed, d.Live, owner.Count, p.o.Pace.StandBack(failed).Round(time.Second))
	case proposal.WhyGaveUp:
		return fmt.Sprintf("room: this pod gave its slot up and gets another one when at most %d pods of %s live, "+
			"or when one stays free: when those that want it failed, or have not taken it for %s; %s", owner.Count, owner.Ref, proposal.Reserved(r.Rank), live)
	case proposal.WhyLimit:
		return fmt.Sprintf("other hand-overs of %s: %d of at most %d are under way, that is requests and new pods that are not available yet", owner.Ref, h.UnderWay, h.Limit)
	case proposal.WhyKept:
		if !owner.Rolls() && h.UnderWay == 0 {
			kept += "; " + owner.KeptByCondemned()
		} else if owner.Rolls() && owner.Rollout.Blocks() {
			kept += "; this rolling update is stuck, because no old pod hands over its slot: " + WayOut
		}
	case proposal.WhyNotFree:
	}
	return fmt.Sprintf("a free slot: %s has count %d and all %d slots belong to live pods; %s; "+
		"a slot comes free when a pod that holds one is gone, or when the count grows%s", owner.Ref, owner.Count, owner.Count, live, kept)
}

// whoOutlives lists pods that have outlived their grace period and still keep slots, with advice. It is empty if there are none.
func whoOutlives(d proposal.Decision) string {
	const most = 3 // pods; a user who sees these looks for more
	if len(d.Overdue) == 0 {
		return ""
	}
	slots := make([]string, 0, most)
	for _, c := range d.Overdue[:min(most, len(d.Overdue))] {
		slots = append(slots, fmt.Sprintf("slot %d of pod %s", c.ID, c.Pod))
	}
	return fmt.Sprintf("; %s: %s", strings.Join(slots, ", "), outlivesGrace)
}
