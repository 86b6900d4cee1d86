package allocator

import (
	"maps"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// reconsider answers whether a plan would change something, as far as this process knows, and draws its turn when that has become so.
func (a *Allocator) reconsider() {
	if a.agent { // it plans nothing, and clears Leases
		a.plans.turn = time.Time{}
		if a.clears() {
			a.plans.turn = a.clock.Now()
		}
		return
	}
	p, worth := &a.plans, false
	p.vacant.See(a.view.owner, map[string]bool{a.peers.NeighbourIdle(a.ref): true}, a.clock.Now())
	switch {
	case !a.view.ok() || a.state.Stopping.All:
	case a.state.Lock.State == receipt.Locks:
		worth = a.holderPlans()
	case a.ends:
		worth = a.state.Lock.State == receipt.GaveUp && a.named(a.view.owner) && !a.clock.Now().Before(p.vainUntil)
	default:
		worth = a.waiterPlans()
	}
	switch {
	case !worth:
		p.turn = time.Time{}
	case p.turn.IsZero():
		p.extended = false
		p.turn = a.clock.Now().Add(a.turnIn(a.pace.Scale(a.view.owner.Count)))
	}
}

// turnIn draws how long this process lets others plan first.
func (a *Allocator) turnIn(scale time.Duration) time.Duration {
	p, owner := &a.plans, a.view.owner
	n, join := p.contenders, time.Duration(0)
	switch a.state.Lock.State {
	case receipt.Locks:
		n, scale, join = max(owner.Count, 2), a.pace.Calm(), a.joinIn()
	case receipt.GaveUp:
		if n, scale = len(owner.Record.State.Handover), min(scale, time.Second); n == 0 {
			n = owner.Count
		}
	case receipt.None, receipt.Waits, receipt.Unreadable:
	}
	damped := p.undone.Damping()
	if damped > 0 {
		n, scale = max(n, 2), max(scale, damped/4)
	}
	return damped + a.pace.Window(n, scale) + join
}

// holderPlans is for a pod with a slot: it plans if the map does not say so, if partitions are to move, or if dead pods are named.
func (a *Allocator) holderPlans() bool {
	owner, id := a.view.owner, a.state.Lock.Share.ID
	switch {
	case a.state.Working.Empty():
		return false
	case id >= owner.Count: // a condemned pod yields its partitions, and others do not hear of that
		return owner.Condemned(a.pod) && a.partitionsDue()
	}
	if !a.named(owner) || a.plans.drops || a.peers.NeighbourGone(a.ref, a.clock.Now()) || a.sweeps() || a.clears() {
		return true
	}
	return a.partitionsDue()
}

// waiterPlans is for a pod without a slot. It first makes the plan from what its watches say, because of a hundred waiters that hear of one free slot
// one gets it: only a plan that has something to write is worth the lists. What the watches do not know yet they will say later.
func (a *Allocator) waiterPlans() bool {
	p, owner := &a.plans, a.view.owner
	id, named := owner.Record.State.Slots.Of(a.o.Pod)
	switch {
	case named && id < owner.Count:
		return a.state.Lock.State == receipt.GaveUp && !a.clock.Now().Before(p.vainUntil) // others go first; a waiter takes it
	case a.state.Lock.State == receipt.GaveUp:
		return false // it waits again first
	case !p.made || owner.UID != p.planned.UID || owner.Count != p.planned.Count:
		return true
	case !a.clock.Now().Before(p.unsureAt) && !p.unsureAt.IsZero():
		return true
	case !a.peers.Synced():
		return !a.unmoved(owner)
	}
	if a.rolledOn(owner, p.decision) {
		return true
	}
	d := proposal.Plan(a.input(owner, a.peers.Pods(owner), p.rollout))
	if d.Next != nil || (d.Reserved > 0) == p.reservedSince.IsZero() || a.rolledOn(owner, d) {
		return !a.clock.Now().Before(p.vainUntil)
	}
	p.again.Reset()
	p.decision, p.planned.Record, p.planned.Annotations = d, owner.Record, owner.Annotations
	return false
}

// unmoved reports whether nothing of the owner has changed that matters to a waiter.
func (a *Allocator) unmoved(owner store.Owner) bool {
	now, then := owner.Record.State, a.plans.planned.Record.State
	return maps.Equal(now.Slots, then.Slots) && maps.Equal(now.Handover, then.Handover)
}

// rolledOn reports whether the rolling update went on since the last plan in a way that matters to a waiter with decision d. How many pods are
// available matters only if the limit of hand-overs kept the waiter from asking for a slot.
func (a *Allocator) rolledOn(owner store.Owner, d proposal.Decision) bool {
	rollout := owner.Rollout
	if !d.HandOver.Full() {
		rollout.Progress = a.plans.planned.Rollout.Progress
	}
	return rollout != a.plans.planned.Rollout
}

// alarm is when time alone changes what a process knows: the first of the times that each part says.
func (a *Allocator) alarm(now time.Time) time.Time {
	mine := a.receipt()
	at := pace.Soonest(now, a.view.alarm(now), a.plans.alarm(now, a.view.owner, a.state.Lock.Share.ID), a.work.Since().Add(a.view.owner.Wish.GiveBackAfter), a.work.Alarm(now), a.peers.NeighbourEnds(a.ref), a.peers.NeighbourTurns(), a.listenAt,
		a.contest.until, a.wait.until, a.wait.complains, a.lag.until, a.plans.reservedSince.Add(a.pace.Longer(proposal.Reserved(mine.Rank))))
	if failures := mine.Failures(); failures > 0 {
		at = pace.Soonest(now, at, a.plans.began.Add(a.pace.StandBack(failures)))
	}
	return at
}

// alarm is when a process has reason to plan that has the slot, or NoID, of the owner.
func (p *plans) alarm(now time.Time, owner store.Owner, id int) time.Time {
	return pace.Soonest(now, p.unsureAt, p.vainUntil, p.vacant.Next(owner.Wish.FailoverAfter, now), p.lacksSince.Add(idleTime), p.sweepsAt(owner, id), p.clearsAt(owner, id))
}

// partitionsDue reports whether a plan would change who owns which partitions, as far as this process knows: of most other pods it knows only
// that the map names them.
func (a *Allocator) partitionsDue() bool {
	owner, mine := a.view.owner, a.state.Lock.Share
	row := owner.Record.State.Row
	if !a.o.Divides && row == nil || a.clock.Now().Before(a.plans.vainUntil) {
		return false
	}
	in := a.input(owner, nil, proposal.Rollout{})
	for id, name := range owner.Record.State.Slots {
		share := receipt.Share{ID: id}
		if row != nil {
			if set, listed := row.Owners[id]; listed {
				share.Of, share.Partitions = max(1, row.Count), set.Minus(mine.Partitions) // no other pod can lock those
			}
		}
		if name == a.o.Pod {
			share = mine
		}
		r := receipt.Receipt{UID: name, Owner: a.ref.String(), State: receipt.Locks, Share: share}
		if in.Partitions.Vacant[id] == name {
			r = receipt.Receipt{}
		}
		in.Pods = append(in.Pods, proposal.Pod{Name: name, UID: name, Owned: true, Ordinal: proposal.NoOrdinal, Receipt: r})
	}
	if proposal.Plan(in).Partitions.Changed {
		return true
	}
	return a.lacksLong()
}

// lacksLong reports whether the target has given this id partitions for a while that it does not have. The pod whose id has them by the row may have died
// after it let them go: then a plan, which reads receipts, gives them away.
func (a *Allocator) lacksLong() bool {
	p, mine := &a.plans, a.state.Lock.Share
	offers, me := a.offers()
	target, known := offers.Target(me, mine.ID)
	switch {
	case !known || target.Subset(mine.Partitions):
		p.lacksSince = time.Time{}
		return false
	case p.lacksSince.IsZero():
		p.lacksSince = a.clock.Now()
	}
	return a.clock.Since(p.lacksSince) >= idleTime
}

// sweepsAt is when this holder plans because the map names more pods than the owner has, or than are Ready: a pod that does not start may be there in
// place of a dead one. The status comes with the watch that each holder has, so no pod lists or follows others to hear of it. The status lacks a pod that
// was relabelled, and before Kubernetes 1.35 those that end. Then the plan is in vain, and the next one comes twice as late.
func (p *plans) sweepsAt(owner store.Owner, id int) time.Time {
	lower, _ := slices.BinarySearch(owner.Record.State.Slots.IDs(), id)
	if p.surplus.pods == 0 && (p.surplus.ready == 0 || lower >= sweepers) {
		return time.Time{}
	}
	return p.sweepFrom.Add((sweepTime + time.Duration(lower)*sweepTurn) << min(p.sweptInVain, 8))
}

func (a *Allocator) sweeps() bool {
	at := a.plans.sweepsAt(a.view.owner, a.state.Lock.Share.ID)
	return !at.IsZero() && !a.clock.Now().Before(at)
}

// clearsAt is when this holder looks for Leases of slots that the owner does not have any more. An agent does not know which ids have holders.
func (p *plans) clearsAt(owner store.Owner, id int) time.Time {
	lower := id
	if slots := owner.Record.State.Slots; len(slots) > 0 {
		lower, _ = slices.BinarySearch(slots.IDs(), id)
	}
	if p.clearAt.IsZero() || lower >= sweepers {
		return time.Time{}
	}
	return p.clearAt.Add(time.Duration(lower) * sweepTurn)
}

func (a *Allocator) clears() bool {
	at := a.plans.clearsAt(a.view.owner, a.state.Lock.Share.ID)
	return !at.IsZero() && !a.clock.Now().Before(at) && a.state.Lock.State == receipt.Locks
}
