package peers

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Vacancies knows since when ids that the row lists have been without an entry, by what this process has seen itself.
type Vacancies struct{ since map[int]time.Time }

// See takes in a moment of the owner.
func (v *Vacancies) See(owner store.Owner, now time.Time) {
	row := owner.Record.State.Row
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

// For is for how long the id has been without an entry, 0 if it has one.
func (v *Vacancies) For(id int, now time.Time) time.Duration {
	if since, vacant := v.since[id]; vacant {
		return now.Sub(since)
	}
	return 0
}

// Over returns the ids that have been without an entry for at least this long. A negative time never ends.
func (v *Vacancies) Over(after time.Duration, now time.Time) map[int]bool {
	over := map[int]bool{}
	for id, since := range v.since {
		if after >= 0 && now.Sub(since) >= after {
			over[id] = true
		}
	}
	return over
}

// Next is when the next id has been without an entry for so long, the zero time if there is none.
func (v *Vacancies) Next(after time.Duration, now time.Time) (at time.Time) {
	for _, since := range v.since {
		if over := since.Add(after); after >= 0 && over.After(now) && (at.IsZero() || over.Before(at)) {
			at = over
		}
	}
	return at
}
