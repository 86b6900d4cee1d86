package allocator

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/planner"
	"github.com/idalloc/idalloc/pkg/allocator/source"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

// WayOut is the advice for a rolling update whose old pods do not hand over.
const WayOut = planner.WayOut

// patience is how long a pod waits for a slot before it reports that, and the interval of further reports.
const patience = 30 * time.Second

// wait records what this process waits for, and since when.
type wait struct {
	what atomic.Pointer[string]
	// since is when this process began to claim a slot, zero while it does not claim. complains is when it next reports what it waits for.
	since, complains time.Time
	// until is when the next request may be sent after a failed one, and why the reason. retry is the back-off of requests.
	until time.Time
	why   string
	retry *pace.Backoff
}

// now returns what the process waits for, empty if nothing. It may be called from any goroutine.
func (w *wait) now() string {
	if s := w.what.Load(); s != nil {
		return *s
	}
	return ""
}

func (w *wait) set(what string) { w.what.Store(&what) }

// after delays the next request by d. what is the reason for users.
func (w *wait) after(now time.Time, d time.Duration, what string) {
	if at := now.Add(d); at.After(w.until) {
		w.until, w.why = at, what
	}
}

// reached is called on the API server's first answer. Before it, the process cannot know why the pod waits.
func (a *Allocator) reached() {
	if took := a.clock.Since(a.began); took >= patience {
		a.wait.complains = a.clock.Now()
		a.wait.set(fmt.Sprintf("the API server, which did not serve this pod for %s after the start (%s): if it gave no answer, look whether a "+
			"NetworkPolicy denies egress to it, or a mesh's proxy starts after idalloc", took.Round(time.Second), a.contact.Failing()))
	}
}

// noteClaim reports the begin and the end of a claim, and repeatedly that it takes long.
func (a *Allocator) noteClaim() {
	w, now := &a.wait, a.clock.Now()
	switch {
	case a.work.Confirmed():
		a.endClaim(event.ClaimTaken)
	case !a.ends && w.since.IsZero():
		w.since = now
		if w.complains.IsZero() {
			w.complains = now.Add(patience)
		}
		a.happened.Tell(event.Claiming{})
	}
	if !w.since.IsZero() && !now.Before(w.complains) {
		w.complains = now.Add(patience)
		if what := w.now(); what != "" {
			a.happened.Tell(event.StillWaiting{Reason: what})
		}
	}
}

func (a *Allocator) endClaim(result event.ClaimResult) {
	if w := &a.wait; !w.since.IsZero() {
		a.happened.Tell(event.Claimed{Result: result, Took: a.clock.Since(w.since)})
		w.since, w.complains = time.Time{}, time.Time{}
	}
}

// claimResult converts the error of a claim to its result.
func claimResult(err error) event.ClaimResult {
	switch {
	case err == nil:
		return event.ClaimTaken
	case errors.Is(err, ErrNoSlot):
		return event.ClaimStopped
	}
	return event.ClaimFailed
}

// explain reports what a process waits for, if that has changed.
func (a *Allocator) explain(next duty.Duty) {
	what, r := "", source.Reason{}
	switch next.Why {
	case duty.Content:
	case duty.WorkStops:
		what = "its work to stop"
	case duty.NoSlot:
		r = a.source.Reason(a.leaseInTheWay())
		what = r.Text
	case duty.OwnTurn:
		what = fmt.Sprintf("its turn: of the pods of %s that want a slot, a few write for all", a.ref)
	case duty.Later:
		what = a.wait.why
	}
	if what == a.wait.now() {
		return
	}
	a.wait.set(what)
	if next.Why == duty.NoSlot {
		a.happened.Tell(event.Waiting{Count: a.source.Facts().Owned, Live: r.Live, Waiting: r.Waiting, Reason: what})
	}
}

// leaseInTheWay describes the Lease of another pod that keeps this pod from its slot, or returns "".
func (a *Allocator) leaseInTheWay() string {
	other := a.contention.lease
	if other.Holder == "" {
		return ""
	}
	return fmt.Sprintf("slot %d: pod %s has the Lease %s, last renewed at %s; if it does not renew it, its time is over by %s (strict mode)",
		other.ID, other.Pod, slotlease.Name(a.ref.String(), other.ID), other.Renewed.Format(time.RFC3339), a.contention.until.Format(time.RFC3339))
}
