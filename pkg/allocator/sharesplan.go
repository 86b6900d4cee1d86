package allocator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/ownership"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// joinTime is how long an id waits at least before it joins the members, and firstJoinTime if there are none: then one write adds
	// all who start together.
	joinTime, firstJoinTime = time.Second, 3 * time.Second
	// lookTime is how often one of the holders looks at all pods, while a plan that should change something comes to nothing.
	lookTime = 30 * time.Second
)

// planInTime sets the alarm for a plan, if one would change something as far as this process knows.
func (h *holding) planInTime(view store.Owner) {
	now := h.now(view)
	h.sharing.laterAt = nil
	if now.next >= 0 {
		h.sharing.laterAt = h.clock.After(now.next)
	}
	if !h.due(view, now) {
		h.sharing.planAt = nil
		return
	}
	if h.sharing.planAt == nil {
		h.sharing.planAt = h.clock.After(h.planWait(view))
	}
}

// passed is what time has brought about by this process's own clock: ids that have been without a holder for failover-after, and
// quarantines that are over.
type passed struct {
	vacant map[int]bool
	served map[int64]bool
	// next is how long it is until there is more, negative if time alone brings no more.
	next time.Duration
}

func (h *holding) now(view store.Owner) passed {
	p := passed{served: map[int64]bool{}}
	p.vacant, p.next = h.vacancies.over(view.Wish.FailoverAfter, h.clock.Now())
	if in := view.Wish.FailoverAfter - h.clock.Since(h.held.since); in > 0 && (p.next < 0 || in < p.next) {
		p.next = in // when the id has been held for that long, it may join beside other members
	}
	if h.sharing.planned != nil {
		if in := h.sharing.planned.until.Sub(h.clock.Now()); in > 0 && (p.next < 0 || in < p.next) {
			p.next = in
		}
	}
	if in, ok := h.neighbourLostIn(); ok && (p.next < 0 || in < p.next) {
		p.next = in
	}
	if f := view.Record.State.FenceAfter; f > 0 {
		length := assignment.QuarantineTime(f)
		p.served = h.quarantined.served(length)
		if in, ok := h.quarantined.next(length); ok && (p.next < 0 || in < p.next) {
			p.next = in
		}
	}
	return p
}

// planWait draws when it is this process's turn to plan.
func (h *holding) planWait(view store.Owner) time.Duration {
	wait := h.pace.Window(view.Count, h.pace.Calm()) + h.retry.Current()
	row := view.Record.State.Partitions
	switch members := row.Members(); {
	case h.pause.active:
	case len(members) == 0:
		wait += firstJoinTime
	case !slices.Contains(members, h.held.id):
		wait += joinTime
	}
	return wait
}

// due reports whether a plan would change something, as far as this process knows: of other pods it knows only that the map names them.
func (h *holding) due(view store.Owner, now passed) bool {
	if last := h.sharing.planned; last != nil && last.holds(view, now) && last.joins == h.joins(view) && h.clock.Now().Before(last.until) {
		return false
	}
	if view.PartitionTrust == assignment.Unreadable {
		return false
	}
	quarantine := view.Record.State.Quarantine
	if view.Record.State.FenceAfter == 0 {
		quarantine = nil // a sweep left it, which knows of no mode. A plan drops it
	}
	row := view.Record.State.Partitions
	in := ownership.Input{
		Count: view.Count, Before: row, Trust: view.PartitionTrust, Clean: view.PartitionsClean(), Wish: view.Wish,
		Holders: map[int]ownership.Holder{}, Vacant: now.vacant, Me: h.held.id, Joins: h.joins(view), Strategies: h.shares.strategy,
		Quarantined: func(id int) bool {
			epoch, ok := quarantine.Since(id)
			return ok && !now.served[epoch]
		},
		Unserved: slices.ContainsFunc(quarantine.Epochs(), func(epoch int64) bool { return !now.served[epoch] }),
	}
	for id := range view.Record.State.Slots {
		if _, gone := h.vacancies.dead[id]; gone {
			continue
		}
		holder := ownership.Holder{}
		if row != nil {
			_, listed := row.Owners[id]
			holder = ownership.Holder{Works: listed, Locks: row.Owners[id], Paused: row.Paused.Contains(id)}
		}
		in.Holders[id] = holder
	}
	in.Holders[h.held.id] = ownership.Holder{Works: true, Locks: h.locked(), Yields: h.shares.yielded, Paused: h.pause.active}
	return ownership.Plan(in).Changed
}

// joins reports whether the id has been held for long enough to join beside other members.
func (a *Allocator) joins(view store.Owner) bool {
	return a.held != nil && (view.Wish.FailoverAfter < 0 || a.clock.Since(a.held.since) >= view.Wish.FailoverAfter)
}

// planShares plans, when it is this process's turn.
func (h *holding) planShares(ctx context.Context) error {
	h.sharing.planAt = nil
	owner, err := h.readOwner(ctx)
	if err == nil {
		h.held.adopt(owner)
		var written *store.Owner
		if written, _, err = h.planAndCommit(ctx, owner, plan.Claim, false); err == nil && written != nil {
			h.held.adopt(*written)
		} else if err == nil {
			h.plannedInVain(owner)
		}
	}
	var large *assignment.TooLargeError
	switch {
	case err == nil:
		h.retry.Reset()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrPodGone):
		return err
	case errors.As(err, &large):
		h.plannedInVain(owner)
	default:
		h.log.V(1).Info("the partitions are planned again later", "reason", err.Error())
		h.retry.Next()
	}
	return nil
}

// plannedInVain notes that a plan about this moment changed nothing. It is made again when the owner or time has changed what it was
// about; and after a while in any case, because pods may have gone of which this process does not hear. On average one of the
// holders does so in lookTime.
func (h *holding) plannedInVain(owner store.Owner) {
	holders := max(1, len(owner.Record.State.Slots))
	until := h.clock.Now().Add(h.pace.Part(lookTime*time.Duration(holders)) * 2 / 3) // Part is half more on average
	h.sharing.planned = &outdated{owner: owner, now: h.now(owner), joins: h.joins(owner), until: until}
}

// outdated is what a plan that changed nothing was about. The same plan is not made again before any of it changes.
type outdated struct {
	owner store.Owner
	now   passed
	// joins says that the id had been held for long enough to join beside other members.
	joins bool
	// until is when the plan is to be made again in any case.
	until time.Time
}

// holds reports whether a plan would be about the same.
func (o *outdated) holds(view store.Owner, now passed) bool {
	same := o.owner.UID == view.UID && o.owner.Count == view.Count && o.owner.Trust == view.Trust && o.owner.PartitionTrust == view.PartitionTrust
	for _, key := range []string{
		assignment.SealKey, assignment.PartitionSealKey, assignment.PartitionCountKey, assignment.PartitionStrategyKey, assignment.PartitionTargetKey,
	} {
		same = same && o.owner.Annotations[key] == view.Annotations[key]
	}
	return same && maps.Equal(o.now.vacant, now.vacant) && maps.Equal(o.now.served, now.served)
}
