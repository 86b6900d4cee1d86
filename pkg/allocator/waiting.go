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
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// WayOut says what to do about a rolling update whose old pods do not hand over.
const WayOut = planner.WayOut

// patience is how long a pod waits for a slot before it says so, and how long until it says so again.
const patience = 30 * time.Second

// wait is what this process waits for.
type wait struct {
	what atomic.Pointer[string]
	// since is when this process began to claim a slot, zero while it does not. complains is when it says again what it waits for.
	since, complains time.Time
	// until is when the next request may be sent after one that failed, and why the reason. retry is the back-off of requests.
	until time.Time
	why   string
	retry *pace.Backoff
}

// now says what is waited for, empty if nothing. It may be called from any goroutine.
func (w *wait) now() string {
	if s := w.what.Load(); s != nil {
		return *s
	}
	return ""
}

func (w *wait) set(what string) { w.what.Store(&what) }

// after delays the next request by d. what is the reason to show.
func (w *wait) after(now time.Time, d time.Duration, what string) {
	if at := now.Add(d); at.After(w.until) {
		w.until, w.why = at, what
	}
}

// reached is called when the API server has answered for the first time. Before that there was no way to tell why this pod waits.
func (a *Allocator) reached() {
	if took := a.clock.Since(a.began); took >= patience {
		a.wait.complains = a.clock.Now()
		a.wait.set(fmt.Sprintf("the API server, which did not serve this pod for %s after the start (%s): if it gave no answer, look whether a "+
			"NetworkPolicy denies egress to it, or a mesh's proxy starts after idalloc", took.Round(time.Second), a.contact.Failing()))
	}
}

// noteClaim tells when a claim begins and ends, and again and again that it takes long.
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

// claimResult says how a claim with this error ended.
func claimResult(err error) event.ClaimResult {
	switch {
	case err == nil:
		return event.ClaimTaken
	case errors.Is(err, ErrNoSlot):
		return event.ClaimStopped
	}
	return event.ClaimFailed
}

// explain says what a process rests for, when that is not what it said last.
func (a *Allocator) explain(next duty.Duty) {
	what, r := "", source.Reason{}
	switch next.Why {
	case duty.Content:
	case duty.WorkStops:
		what = "the work to stop that was told to"
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

// leaseInTheWay says which Lease of another pod keeps this one from its slot, empty if none does.
func (a *Allocator) leaseInTheWay() string {
	other := a.contention.lease
	if other.Holder == "" {
		return ""
	}
	return fmt.Sprintf("slot %d: pod %s has the Lease %s, last renewed at %s; if it does not renew it, its time is over by %s (strict mode)",
		other.ID, other.Pod, store.LeaseName(a.ref.String(), other.ID), other.Renewed.Format(time.RFC3339), a.contention.until.Format(time.RFC3339))
}
