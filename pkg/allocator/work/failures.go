package work

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// ProvenAfter is how long work must run under an id so that its end does not count as a failure.
const ProvenAfter = 10 * time.Minute

// restAfter is how many failures in a row let a process rest. The receipt counts them, so the count outlives the process. Three ends within a minute would
// need a second count, and a clock that a restarted process does not have.
const restAfter = 3

// failures tracks the failures of the program, and the pauses that follow from them or that the process asks for.
type failures struct {
	// count is how often in a row the program failed.
	count int
	// paused: the process asked for a pause.
	paused bool
	rest   rest
}

// rest is a pause caused by failures.
type rest struct {
	until time.Time
	// active: the process gets no partitions now. ended is when the last rest ended.
	active bool
	ended  time.Time
}

// Failed sets how often in a row the program had failed when this process began. With rests, the process gets no partitions for a while after too many
// failures.
func (w *Work) Failed(times int, rests bool, began time.Time) {
	w.failures.count = times
	if rests && times >= restAfter {
		w.failures.rest.until = began.Add(w.o.Pace.StandBack(times))
	}
}

// FollowRest begins a rest that is due. It ends the rest when its time is over, or when no other id can work on this pod's partitions.
func (w *Work) FollowRest(t duty.LockState, shared func() bool) {
	f, now := &w.failures, w.o.Clock.Now()
	r := &f.rest
	if r.until.IsZero() {
		return
	}
	if !shared() || !now.Before(r.until) {
		r.until = time.Time{}
	}
	if active := !r.until.IsZero(); active != r.active {
		if r.active = active; !active {
			r.ended = now
		}
		w.o.Tell(event.Paused{ID: t.Lock.Share.ID, Paused: active, Failed: f.count, For: max(0, r.until.Sub(now))})
	}
}

// Pauses reports whether the process gets no partitions now.
func (w *Work) Pauses() bool { return w.failures.paused || w.failures.rest.active }

// Pause begins or ends a pause that the process asks for.
func (w *Work) Pause(t duty.LockState, paused bool) {
	if w.failures.paused != paused {
		w.failures.paused = paused
		w.o.Tell(event.Paused{ID: t.Lock.Share.ID, Paused: paused})
	}
}

// Untouched reports whether this process has neither published an identity nor given a slot back yet.
func (w *Work) Untouched() bool { return !w.published && !w.givesBack }

// GiveBack plans to give back the slot of this receipt, because an earlier process failed under it.
func (w *Work) GiveBack(r receipt.Receipt) {
	w.failures.count = r.Failures() + 1
	w.givesBack = true
	w.o.Tell(event.GivenBack{ID: r.Share.ID, Failed: w.failures.count})
}

// Rank returns the rank for the next receipt. stands is the rank in the present receipt.
func (w *Work) Rank(before, lock duty.Lock, stands int) int {
	count := w.failures.count
	if w.proven() {
		count = 0
	}
	switch {
	case lock.State == receipt.GaveUp && before.State == receipt.Locks:
		return count + 1
	case lock.State == receipt.Locks && count == 0:
		return 0
	case lock.State == receipt.Locks:
		return count + 1
	}
	return max(stands, count+min(count, 1))
}

// proven reports whether the program has run long enough.
func (w *Work) proven() bool {
	rest, now := w.failures.rest, w.o.Clock.Now()
	return !w.since.IsZero() && !rest.active && min(now.Sub(w.since), now.Sub(rest.ended)) >= ProvenAfter
}

// Ends counts the end of the process as a failure if the work ended by itself too soon.
func (w *Work) Ends(byItself bool) {
	switch {
	case w.proven():
		w.failures.count = 0
	case byItself && !w.since.IsZero() && !w.Pauses():
		w.failures.count++
	}
}
