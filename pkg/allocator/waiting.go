package allocator

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/work"
)

// WayOut says what to do about a rolling update whose old pods do not hand over.
const WayOut = "set maxSurge: 0 with maxUnavailable: 1 or more, or let the pods hand over: idalloc run, a linked program, " +
	"or idalloc watch with --drain-exec or --drain=http"

// OutlivesGrace says why the slot of a pod that has outlived its grace period does not come free, and what to do.
const OutlivesGrace = "being deleted, grace period over, not gone, so its node may be down; without strict mode no other pod can have the slot " +
	"before the pod is gone: bring the node back, or, if it is off for good, taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute " +
	"or delete the Node object"

// patience is how long a pod waits for a slot before it says so, and how long until it says so again.
const patience = 30 * time.Second

// wait is what this process waits for.
type wait struct {
	what atomic.Pointer[string]
	// since is when this process began to claim a slot, zero while it does not. complains is when it says again what it waits for.
	since, complains time.Time
	// until is when the next request may be sent after one in vain, and why says what for. retry is the back-off of requests.
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

// after has no request sent for this long. what says what is waited for.
func (w *wait) after(now time.Time, d time.Duration, what string) {
	if at := now.Add(d); at.After(w.until) {
		w.until, w.why = at, what
	}
}

// reached takes in that the API server has answered for the first time. Before that there was no way to tell why this pod waits.
func (a *Allocator) reached() {
	if took := a.clock.Since(a.plans.began); took >= patience {
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
	what, d := "", a.plans.decision
	switch next.Why {
	case duty.Content:
	case duty.WorkStops:
		what = "the work to stop that was told to"
	case duty.NoSlot:
		what = a.reason()
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
		a.happened.Tell(event.Waiting{Count: a.owned(), Live: d.Live, Waiting: d.Waiting, Reason: what})
	}
}

// reason says why this pod has no slot.
func (a *Allocator) reason() string {
	owner, d, r := a.view.owner, a.plans.decision, a.receipt()
	switch other := a.contest.lease; {
	case a.agent && other.Holder == "":
		return a.awaits()
	case a.view.state == gone:
		return fmt.Sprintf("%s in namespace %s to exist, or for another workload to own this pod", a.ref, a.ref.Namespace)
	case owner.Count == 0:
		return fmt.Sprintf("the count to grow: %s is scaled to 0", owner.Ref)
	case other.Holder != "":
		return fmt.Sprintf("slot %d: pod %s has the Lease %s, last renewed at %s; if it does not renew it, its time is over by %s (strict mode)",
			other.ID, other.Pod, store.LeaseName(a.ref.String(), other.ID), other.Renewed.Format(time.RFC3339), a.contest.until.Format(time.RFC3339))
	case !a.plans.made:
		return fmt.Sprintf("a first plan for %s", owner.Ref)
	}
	live := fmt.Sprintf("%d pods live, %d wait", d.Live, d.Waiting)
	kept := whoOutlives(d)
	switch h := d.HandOver; d.WhyNot {
	case proposal.WhyNoRoom:
		return fmt.Sprintf("room on %s: %s; %s", owner.Ref, d.TooLarge.Error(), live)
	case proposal.WhyAsked:
		requests := owner.Record.State.Handover
		if d.Next != nil {
			requests = d.Next.Handover
		}
		if id, asks := requests.Of(a.o.Pod); asks {
			return fmt.Sprintf("the hand-over of slot %d: %s was asked for it and gives it when its work has stopped; if that takes long, look whether that pod has contact with "+
				"the API server (its log, idalloc verify); the slot comes free when the pod is deleted", id, owner.Record.State.Slots[id])
		}
	case proposal.WhyFailed:
		failed := r.Failures()
		return fmt.Sprintf("a later try: this pod's program ended by itself within %s after it had got a slot (failures in a row: %d); while %d pods live for %d slots, "+
			"those that gave theirs up go first, and no other pod's work is stopped for this one before it has run for %s: look at its log, repair or undo the rollout",
			work.ProvenAfter, failed, d.Live, owner.Count, a.pace.StandBack(failed).Round(time.Second))
	case proposal.WhyGaveUp:
		return fmt.Sprintf("room: this pod gave its slot up and gets another one when at most %d pods of %s live, "+
			"or when one stays free: when those that want it failed, or have not taken it for %s; %s", owner.Count, owner.Ref, proposal.Reserved(r.Rank), live)
	case proposal.WhyLimit:
		return fmt.Sprintf("other hand-overs of %s: %d of at most %d are under way, that is requests and new pods that are not available yet", owner.Ref, h.UnderWay, h.Limit)
	case proposal.WhyKept:
		if !owner.Rolls() && h.UnderWay == 0 {
			kept += "; " + owner.KeptByCondemned()
		} else if owner.Rolls() && owner.Rollout.Blocks() {
			kept += "; this rolling update does not go on by itself, since no old pod hands over its slot: " + WayOut
		}
	case proposal.WhyNotFree:
	}
	return fmt.Sprintf("a free slot: %s has count %d and all %d slots belong to live pods; %s; "+
		"a slot comes free when a pod that holds one is gone, or when the count grows%s", owner.Ref, owner.Count, owner.Count, live, kept)
}

// whoOutlives says which pods have outlived their grace period and keep slots all the same, and what to do. It is empty if none does.
func whoOutlives(d proposal.Decision) string {
	const most = 3 // pods; who sees these looks for more
	if len(d.Overdue) == 0 {
		return ""
	}
	slots := make([]string, 0, most)
	for _, c := range d.Overdue[:min(most, len(d.Overdue))] {
		slots = append(slots, fmt.Sprintf("slot %d of pod %s", c.ID, c.Pod))
	}
	return fmt.Sprintf("; %s: %s", strings.Join(slots, ", "), OutlivesGrace)
}
