package allocator

import (
	"time"

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
