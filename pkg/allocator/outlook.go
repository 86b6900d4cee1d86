package allocator

import (
	"maps"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
)

// outlook is what a waiter knows since its last plan. With it and with what its watches say, the waiter answers one question: may a
// plan come to more now? So of many waiters that hear of one freed slot, only the first has to list the pods.
type outlook struct {
	// planned is the owner as of the last plan that came to nothing, with the newest map that the waiter heard of since.
	planned store.Owner
	// outcome is what that plan came to, or would have come to since.
	outcome plan.Decision
	// unsure says that the watches have been silent for so long that the waiter does not rely on them.
	unsure bool
	// reservedSince is when this waiter first saw a free slot that is reserved for other pods.
	reservedSince time.Time
}

// same reports whether the owner differs from that of the last plan at most in what the watches tell: map, rollout and pods.
func (o *outlook) same(owner store.Owner) bool {
	return owner.UID == o.planned.UID && owner.Count == o.planned.Count && owner.Clean() == o.planned.Clean()
}

// unmoved reports whether nothing of the map has changed that matters to a waiter.
func (o *outlook) unmoved(owner store.Owner) bool {
	now, then := owner.Record.State, o.planned.Record.State
	return o.same(owner) && maps.Equal(now.Slots, then.Slots) && maps.Equal(now.Handover, then.Handover) &&
		(o.outcome.TooLarge == nil || owner.Room() == o.planned.Room())
}

// rolledOn reports whether the rolling update went on since the last plan in a way that matters to a waiter with decision d. How many
// pods are available matters only if the limit of hand-overs kept the waiter from asking for a slot.
func (o *outlook) rolledOn(owner store.Owner, d plan.Decision) bool {
	rollout := owner.Rollout
	if !d.HandOver.Full() {
		rollout.Progress = o.planned.Rollout.Progress
	}
	return rollout != o.planned.Rollout
}

// foresee returns what a plan for this owner would come to, as far as the watches know, and whether that is nothing. The watches will
// tell what they do not know yet. A quarantine that another pod wrote counts from here, because this waiter may not read the owner
// before it is over.
func (c *claimer) foresee(owner store.Owner) (d plan.Decision, nothing bool) {
	c.quarantined.see(owner, c.clock.Now())
	if c.unsure || c.podStreams == nil || !c.podStreams.synced() || !c.same(owner) || named(owner, c.Allocator) {
		return d, false // a plan says nothing of a slot that this pod has and is to take
	}
	live := gc.Guess(c.store, owner, c.podStreams.owned.Objects(), c.podStreams.labelled.Objects())
	d = c.decideFor(c.input(owner, live, plan.Claim), c.rollout)
	if d.Next == nil {
		return d, (d.Reserved == 0) == c.reservedSince.IsZero() // a slot that this pod must not have yet is timed by plan
	}
	return d, c.changesNothing(owner, d)
}

// worthAPlan answers the question for an owner that was read or heard of since the last plan. If the answer is no, the owner's map is
// the one of the outlook from then on.
func (c *claimer) worthAPlan(owner store.Owner) bool {
	d, nothing := c.foresee(owner)
	if !nothing || c.rolledOn(owner, d) {
		return true
	}
	c.retry.Reset()
	c.outcome, c.planned.Record, c.planned.Annotations = d, owner.Record, owner.Annotations
	return false
}

// heardMore answers the question after a stream had news.
func (c *claimer) heardMore() bool {
	c.noteStale()
	freed := c.podStreams.freed()
	owner, known, err := c.owner.Latest()
	if err != nil || !known {
		return false
	}
	c.departures.hear(owner, c.clock.Now(), c.podStreams.owned, c.podStreams.labelled)
	c.quarantined.see(owner, c.clock.Now()) // also where nothing else changed: somebody may have put the slots there anew
	if owner.Count != c.current.Count {
		c.becomePending(owner.Count)
	}
	switch {
	case c.rolledOn(owner, c.outcome):
		return true
	case !freed && c.unmoved(owner):
		return false
	case c.worthAPlan(owner):
		return true
	}
	c.tellWaiting()
	return false
}

// tellWaiting says what this pod waits for, and notes with how many.
func (c *claimer) tellWaiting() {
	c.contenders = max(1, c.outcome.Waiting)
	c.explain(c.planned, c.outcome)
}
