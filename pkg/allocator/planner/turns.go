package planner

import (
	"maps"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/source"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Consider draws this process's turn if a plan would probably change something.
func (p *Planner) Consider() {
	s, q, worth := p.o.Process.State(), &p.plans, false
	q.vacant.See(p.view.owner, map[string]bool{p.peers.NeighbourIdle(s.Owner): true}, p.o.Clock.Now())
	switch {
	case !p.view.ok() || s.Locks.Stopping.All:
	case s.Locks.Lock.State == receipt.Locks:
		worth = p.holderPlans(s)
	case s.Ends:
		worth = s.Locks.Lock.State == receipt.GaveUp && p.named(s, p.view.owner) && !p.o.Clock.Now().Before(q.vainUntil)
	default:
		worth = p.waiterPlans(s)
	}
	switch {
	case !worth:
		q.turn = time.Time{}
	case q.turn.IsZero():
		q.extended = false
		q.turn = p.o.Clock.Now().Add(p.turnIn(s, p.o.Pace.Scale(p.view.owner.Count)))
	}
}

// turnIn draws how long this process lets others plan first.
func (p *Planner) turnIn(s source.State, scale time.Duration) time.Duration {
	q, owner := &p.plans, p.view.owner
	n, join := q.contenders, time.Duration(0)
	switch s.Locks.Lock.State {
	case receipt.Locks:
		n, scale, join = max(owner.Count, 2), p.o.Pace.Calm(), p.joinIn(s)
	case receipt.GaveUp:
		if n, scale = len(owner.Record.State.Handover), min(scale, time.Second); n == 0 {
			n = owner.Count
		}
	case receipt.None, receipt.Waits, receipt.Unreadable:
	}
	damped := q.undone.Damping()
	if damped > 0 {
		n, scale = max(n, 2), max(scale, damped/4)
	}
	return damped + p.o.Pace.Window(n, scale) + join
}

// holderPlans reports whether a pod with a slot should plan: the map does not name it, partitions should move, or the map names dead pods.
func (p *Planner) holderPlans(s source.State) bool {
	owner, id := p.view.owner, s.Locks.Lock.Share.ID
	switch {
	case s.Locks.Working.Empty():
		return false
	case id >= owner.Count: // a condemned pod yields its partitions, and others do not hear of that
		return owner.Condemned(s.Pod) && p.partitionsDue(s)
	}
	if !p.named(s, owner) || p.plans.drops || p.peers.NeighbourGone(s.Owner, p.o.Clock.Now()) || p.sweeps(s) || p.clears(s) {
		return true
	}
	return p.partitionsDue(s)
}

// waiterPlans reports whether a pod without a slot should plan. It first plans from its watches: if a hundred waiters hear of one free slot, only one gets
// it, so only a plan with something to write justifies the lists. The watches deliver later what they do not show yet.
func (p *Planner) waiterPlans(s source.State) bool {
	q, owner := &p.plans, p.view.owner
	id, named := owner.Record.State.Slots.Of(p.o.Pod)
	switch {
	case named && id < owner.Count:
		return s.Locks.Lock.State == receipt.GaveUp && !p.o.Clock.Now().Before(q.vainUntil) // others go first; a waiter takes it
	case s.Locks.Lock.State == receipt.GaveUp:
		return false // it must wait again first
	case !q.made || owner.UID != q.planned.UID || owner.Count != q.planned.Count:
		return true
	case !p.o.Clock.Now().Before(q.unsureAt) && !q.unsureAt.IsZero():
		return true
	case !p.peers.Synced():
		return !p.unmoved(owner)
	}
	if p.rolledOn(owner, q.decision) {
		return true
	}
	d := proposal.Plan(p.input(s, p.peers.Pods(owner), q.rollout))
	if d.Next != nil || (d.Reserved > 0) == q.reservedSince.IsZero() || p.rolledOn(owner, d) {
		return !p.o.Clock.Now().Before(q.vainUntil)
	}
	q.again.Reset()
	q.decision, q.planned.Record, q.planned.Annotations = d, owner.Record, owner.Annotations
	return false
}

// unmoved reports whether nothing of the owner has changed that matters to a waiter.
func (p *Planner) unmoved(owner store.Owner) bool {
	now, then := owner.Record.State, p.plans.planned.Record.State
	return maps.Equal(now.Slots, then.Slots) && maps.Equal(now.Handover, then.Handover)
}

// rolledOn reports whether the rolling update has progressed since the last plan in a way that matters to a waiter with decision d. The number of available
// pods matters only if the limit of hand-overs kept the waiter from asking for a slot.
func (p *Planner) rolledOn(owner store.Owner, d proposal.Decision) bool {
	rollout := owner.Rollout
	if !d.HandOver.Full() {
		rollout.Progress = p.plans.planned.Rollout.Progress
	}
	return rollout != p.plans.planned.Rollout
}

// partitionsDue reports whether a plan would probably change who owns which partitions. The process knows of most other pods only that the map names them.
func (p *Planner) partitionsDue(s source.State) bool {
	owner, mine := p.view.owner, s.Locks.Lock.Share
	row := owner.Record.State.Row
	if !p.o.Divides && row == nil || p.o.Clock.Now().Before(p.plans.vainUntil) {
		return false
	}
	in := p.input(s, nil, proposal.Rollout{})
	for id, name := range owner.Record.State.Slots {
		share := receipt.Share{ID: id}
		if row != nil {
			if set, listed := row.Owners[id]; listed {
				share.Of, share.Partitions = max(1, row.Count), set.Minus(mine.Partitions) // no other pod can lock this pod's partitions
			}
		}
		if name == p.o.Pod {
			share = mine
		}
		r := receipt.Receipt{UID: name, Owner: s.Owner.String(), State: receipt.Locks, Share: share}
		if in.Partitions.Vacant[id] == name {
			r = receipt.Receipt{}
		}
		in.Pods = append(in.Pods, proposal.Pod{Name: name, UID: name, Owned: true, Ordinal: proposal.NoOrdinal, Receipt: r})
	}
	if proposal.Plan(in).Partitions.Changed {
		return true
	}
	return p.lacksLong(s)
}

// lacksLong reports whether this id has lacked partitions of its target for idleTime. The pod that owns them by the row may have died after it released
// them: then a plan, which reads receipts, reassigns them.
func (p *Planner) lacksLong(s source.State) bool {
	q, mine := &p.plans, s.Locks.Lock.Share
	offers, me := p.offers(s)
	target, known := offers.Target(me, mine.ID)
	switch {
	case !known || target.Subset(mine.Partitions):
		q.lacksSince = time.Time{}
		return false
	case q.lacksSince.IsZero():
		q.lacksSince = p.o.Clock.Now()
	}
	return p.o.Clock.Since(q.lacksSince) >= idleTime
}

// sweeps reports whether this holder plans now because the map names too many pods.
func (p *Planner) sweeps(s source.State) bool {
	at := p.plans.sweepsAt(p.view.owner, s.Locks.Lock.Share.ID)
	return !at.IsZero() && !p.o.Clock.Now().Before(at)
}

// clears reports whether this holder deletes Leases now.
func (p *Planner) clears(s source.State) bool {
	at := p.plans.clearsAt(p.view.owner, s.Locks.Lock.Share.ID)
	return !at.IsZero() && !p.o.Clock.Now().Before(at) && s.Locks.Lock.State == receipt.Locks
}
