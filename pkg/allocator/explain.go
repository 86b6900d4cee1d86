package allocator

import (
	"fmt"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// WayOut says what to do about a rolling update whose old pods do not hand over.
const WayOut = "set maxSurge: 0 with maxUnavailable: 1 or more, or let the pods hand over: idalloc run, pkg/context, " +
	"or idalloc watch with --drain-exec or --drain=http"

// OutlivesGrace says why the slot of a pod that has outlived its grace period does not come free, and what to do.
const OutlivesGrace = "being deleted, grace period over, not gone, so its node may be down; without strict mode nobody else can have the slot " +
	"before the pod is gone: bring the node back, or, if it is off for good, taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute " +
	"or delete the Node object"

// explain says what a waiter waits for, when that is not what it said last.
func (c *claimer) explain(owner store.Owner, d plan.Decision) {
	what := c.reason(owner, d)
	if what == c.Waiting() {
		return
	}
	c.setWaiting(what)
	c.happened.Tell(event.Waiting{Count: owner.Count, Live: d.Live, Waiting: d.Waiting, Reason: what})
}

func (c *claimer) reason(owner store.Owner, d plan.Decision) string {
	if owner.Count == 0 {
		return fmt.Sprintf("the count to grow: %s is scaled to 0", owner.Ref)
	}
	if d.Quarantined > 0 {
		return fmt.Sprintf("the quarantine of %d slots of %s, which may still be in use by pods that vanished: "+
			"it takes %s from when this pod first saw it (strict mode, fence-after %s)",
			d.Quarantined, owner.Ref, assignment.QuarantineTime(d.FenceAfter).Round(time.Second), d.FenceAfter)
	}
	if id, asked := next(owner.Record.State, d).Handover.Of(c.o.Pod); asked {
		return fmt.Sprintf("the hand-over of slot %d: %s, of an older revision, was asked for it and gives it when its work has stopped",
			id, owner.Record.State.Slots[id])
	}
	if d.TooLarge != nil {
		return fmt.Sprintf("room on %s: %s; %d pods live, %d wait", owner.Ref, d.TooLarge.Detail(), d.Live, d.Waiting)
	}
	if failed := c.receipt().Failures(); failed > 0 && d.Live > owner.Count {
		return fmt.Sprintf("a later try: this pod's program ended by itself within %s after it had got a slot (failures in a row: %d); while %d pods live for %d slots, "+
			"those that gave theirs up go first, and no other pod's work is stopped for this one before it has run for %s: look at its log, repair or undo the rollout",
			provenAfter, failed, d.Live, owner.Count, c.standBackFor(failed).Round(time.Second))
	}
	if c.gaveUp() && d.Live > owner.Count && d.HandOver.Limit == 0 {
		return fmt.Sprintf("room: this pod gave its slot up and gets another one when at most %d pods of %s live, "+
			"or when one stays free: when those that want it failed, or have not taken it for %s; %d pods live, %d wait",
			owner.Count, owner.Ref, reserveTime, d.Live, d.Waiting)
	}
	what := fmt.Sprintf("a free slot: %s has count %d and all %d slots belong to live pods; %d pods live, %d wait; "+
		"a slot comes free when a pod that holds one is gone, or when the count grows", owner.Ref, owner.Count, owner.Count, d.Live, d.Waiting)
	if overdue := whoOutlives(d); overdue != "" {
		what += overdue
	}
	switch h := d.HandOver; {
	case h.Full():
		what = fmt.Sprintf("other hand-overs of %s: %d of at most %d are under way, that is requests and new pods that are not available yet",
			owner.Ref, h.UnderWay, h.Limit)
	case h.Older > 0 && h.Able == 0 && owner.Rollout.Blocks():
		what += "; this rolling update does not go on by itself, since no old pod hands over its slot: " + WayOut
	}
	return what
}

// whoOutlives says which pods have outlived their grace period and keep slots all the same, and what to do. It is empty if none does.
func whoOutlives(d plan.Decision) string {
	const most = 3 // pods; who sees these looks for more
	if len(d.Overdue) == 0 {
		return ""
	}
	slots := make([]string, 0, most)
	for _, c := range d.Overdue[:min(most, len(d.Overdue))] {
		slots = append(slots, fmt.Sprintf("slot %d of pod %s", c.ID, c.Pod))
	}
	return fmt.Sprintf("; %s: %s", strings.Join(slots, ", "), OutlivesGrace)
}
