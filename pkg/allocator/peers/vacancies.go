package peers

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Vacancies tracks which ids of the row have no holder, by what this process has seen itself: the map has no entry, or the entry of a pod that locks
// nothing. Such a pod may never start.
type Vacancies struct{ ids map[int]vacancy }

// vacancy is since when an id has been vacant. pod is the pod of its entry, empty if there is none.
type vacancy struct {
	pod   string
	since time.Time
}

// See records the present state. idle has pods that lock nothing. A pod with a new entry gets the full time to take it.
func (v *Vacancies) See(owner store.Owner, idle map[string]bool, now time.Time) {
	row := owner.Record.State.Row
	if row == nil {
		v.ids = nil
		return
	}
	ids := map[int]vacancy{}
	for id := range row.Owners {
		pod := owner.Record.State.Slots[id]
		if pod != "" && !idle[pod] {
			continue
		}
		since := now
		if was, vacant := v.ids[id]; vacant && (pod == "" || pod == was.pod) {
			since = was.since
		}
		ids[id] = vacancy{pod, since}
	}
	v.ids = ids
}

// Any reports whether any id is vacant.
func (v *Vacancies) Any() bool { return len(v.ids) > 0 }

// For returns how long the id has been vacant, 0 if it is not.
func (v *Vacancies) For(id int, now time.Time) time.Duration {
	if is, vacant := v.ids[id]; vacant {
		return now.Sub(is.since)
	}
	return 0
}

// Over returns the ids that have been vacant for at least after, with the pods of their entries. A negative time never ends.
func (v *Vacancies) Over(after time.Duration, now time.Time) map[int]string {
	over := map[int]string{}
	for id, is := range v.ids {
		if after >= 0 && now.Sub(is.since) >= after {
			over[id] = is.pod
		}
	}
	return over
}

// Next returns when the next id has been vacant for that long, the zero time if there is none.
func (v *Vacancies) Next(after time.Duration, now time.Time) (at time.Time) {
	for _, is := range v.ids {
		if over := is.since.Add(after); after >= 0 && over.After(now) && (at.IsZero() || over.Before(at)) {
			at = over
		}
	}
	return at
}
