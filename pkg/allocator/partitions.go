package allocator

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// joinTime is how long a holder waits before it joins those that divide the partitions, and firstJoinTime if nobody does yet: one write
	// serves all that start together.
	joinTime, firstJoinTime = time.Second, 3 * time.Second
	// idleTime is how long a holder waits for somebody else to plan that a partition is its own which nobody works on.
	idleTime = 5 * time.Second
)

// vacancies knows since when ids that the row lists have been without an entry, by what this process has seen itself.
type vacancies struct{ since map[int]time.Time }

// see takes in a moment of the owner.
func (v *vacancies) see(owner store.Owner, now time.Time) {
	row := owner.Record.State.Partitions
	if row == nil {
		v.since = nil
		return
	}
	since := map[int]time.Time{}
	for id := range row.Owners {
		if _, taken := owner.Record.State.Slots[id]; taken {
			continue
		}
		if since[id] = now; !v.since[id].IsZero() {
			since[id] = v.since[id]
		}
	}
	v.since = since
}

// over returns the ids that have been without an entry for at least this long. A negative time never ends.
func (v *vacancies) over(after time.Duration, now time.Time) map[int]bool {
	over := map[int]bool{}
	for id, since := range v.since {
		if after >= 0 && now.Sub(since) >= after {
			over[id] = true
		}
	}
	return over
}

// vacantAt is when the next id has been without an entry for failover-after.
func (a *Allocator) vacantAt() (at time.Time) {
	now, after := a.clock.Now(), a.view.owner.Wish.FailoverAfter
	for _, since := range a.plans.vacant.since {
		if over := since.Add(after); after >= 0 && over.After(now) && (at.IsZero() || over.Before(at)) {
			at = over
		}
	}
	return at
}

// joins reports whether the id has been held for long enough to join beside other members (strategy primary).
func (a *Allocator) joins() bool {
	after := a.view.owner.Wish.FailoverAfter
	return !a.tenure.Working.Empty() && (after < 0 || a.clock.Since(a.work.since) >= after)
}

func (a *Allocator) joinsAt() time.Time {
	if !a.o.Divides || a.joins() || a.tenure.Working.Empty() {
		return time.Time{}
	}
	return a.work.since.Add(a.view.owner.Wish.FailoverAfter)
}

// joinIn is how much later a holder plans that is not among those that divide the partitions yet, or whose partitions are idle.
func (a *Allocator) joinIn() time.Duration {
	row := a.view.owner.Record.State.Partitions
	switch {
	case !a.o.Divides || a.work.paused || a.work.rest.active || !a.view.owner.Wish.HasCount && row == nil:
		return 0
	case row == nil || len(row.Owners) == 0:
		return firstJoinTime
	}
	if _, listed := row.Owners[a.tenure.Lock.Share.ID]; !listed {
		return joinTime
	}
	return 0
}

// partitionsDue reports whether a plan would change who owns which partitions, as far as this process knows: of other pods it knows only that the
// map names them.
func (a *Allocator) partitionsDue() bool {
	owner, mine := a.view.owner, a.tenure.Lock.Share
	row := owner.Record.State.Partitions
	if !a.o.Divides && row == nil || a.clock.Now().Before(a.plans.vainUntil) {
		return false
	}
	in := a.input(owner, nil, proposal.Rollout{})
	for id, name := range owner.Record.State.Slots {
		share := receipt.Share{ID: id}
		if row != nil {
			if set, listed := row.Owners[id]; listed {
				share.Of, share.Partitions = max(1, row.Count), set
			}
		}
		if name == a.o.Pod {
			share = mine
		}
		r := receipt.Receipt{UID: name, Owner: a.ref.String(), State: receipt.Locks, Share: share}
		in.Pods = append(in.Pods, proposal.Pod{Name: name, UID: name, Owned: true, Ordinal: proposal.NoOrdinal, Receipt: r})
	}
	if proposal.Plan(in).Partitions.Changed {
		return true
	}
	return a.lacksLong()
}

// lacksLong reports whether the target has given this id partitions for a while that it does not have. Who has them by the row may have died
// after it let them go: then a plan, which reads receipts, gives them away.
func (a *Allocator) lacksLong() bool {
	p, mine, row := &a.plans, a.tenure.Lock.Share, a.view.owner.Record.State.Partitions
	target, known := proposal.Target(a.view.owner.Count, row, a.view.owner.Wish, a.o.strategy)
	switch {
	case !known || target[mine.ID].Subset(mine.Partitions):
		p.lacksSince = time.Time{}
		return false
	case p.lacksSince.IsZero():
		p.lacksSince = a.clock.Now()
	}
	return !a.clock.Now().Before(a.idleAt())
}

// idleAt is when this holder plans because it lacks partitions.
func (a *Allocator) idleAt() time.Time {
	if a.plans.lacksSince.IsZero() {
		return time.Time{}
	}
	return a.plans.lacksSince.Add(idleTime)
}

// tellPartitions tells what this pod's write changed about partitions.
func (a *Allocator) tellPartitions(before store.Owner, d proposal.Decision) {
	if !d.Partitions.Changed {
		return
	}
	if was, is := division(before.Record.State.Partitions), division(d.Next.Partitions); was != is {
		a.happened.Tell(event.PartitionsInForce{About: a.view.about(), Old: was, New: is})
	}
	if given, taken := total(d.Partitions.Gained), total(d.Partitions.Lost); given+taken > 0 {
		a.happened.Tell(event.PartitionsMoved{Given: given, Taken: taken})
	}
	var from []event.Failover
	for _, lost := range d.Partitions.FailedOver {
		f := event.Failover{ID: lost.ID, Partitions: lost.Set.String(), After: a.clock.Since(a.plans.vacant.since[lost.ID])}
		for _, gained := range d.Partitions.Gained {
			if !gained.Set.Intersect(lost.Set).Empty() {
				f.To = append(f.To, gained.ID)
			}
		}
		from = append(from, f)
	}
	if len(from) > 0 {
		a.happened.Tell(event.FailedOver{About: a.view.about(), From: from})
	}
}

func division(p *assignment.Partitions) event.Division {
	if p == nil {
		return event.Division{}
	}
	return event.Division{Count: p.Count, Strategy: p.Strategy}
}

func total(changes []proposal.Owned) (n int) {
	for _, c := range changes {
		n += c.Set.Len()
	}
	return n
}

// requestOf returns the requests after a decision.
func requestOf(owner store.Owner, d proposal.Decision) assignment.Slots {
	if d.Next != nil {
		return d.Next.Handover
	}
	return owner.Record.State.Handover
}
