// Package work tracks what the program does under the id of its pod: the published identity, the parts that are being stopped, and the failures of the
// program. It knows the loop only through the lock state that its methods receive and return.
package work

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/contact"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// noteTime is the least time after T3 before a pod notes its tokens, so that pods do not write notes while many start.
const noteTime = 10 * time.Second

// Options configure Work.
type Options struct {
	Clock   clock.Clock
	Log     *logr.Logger
	Pace    *pace.Pace
	Contact *contact.Contact
	Tell    func(event.Event)
	// Publish, Stop, Divides, LastStop and Paused: see allocator.Options.
	Publish  func(identity.Identity)
	Stop     func(context.Context, Stop) error
	Divides  bool
	LastStop int
	Paused   bool
}

// Claim is what the loop knows about the claim, apart from the locks.
type Claim struct {
	// Ends: the process ends.
	Ends bool
	// Over: the time of the pod's Lease is over.
	Over bool
	// Owner is the owner to publish, and Count its number of slots.
	Owner identity.Owner
	Count int
	// Known: there is an owner to act for. Counted: Count may be published, because the owner is known or the pod keeps what it holds of the former owner.
	Known, Counted bool
	// Requester is the pod that should get the slot, empty if there is none.
	Requester string
}

// Work tracks the work of one process. One goroutine may use it at a time.
type Work struct {
	o Options
	// shown is the last published identity if published is true. Until then, left is in force: what an earlier process published.
	shown     identity.Identity
	published bool
	left      identity.Identity
	// t2 is the token of the last write of a lock, and token that of the lock on the slot. shares are the locked partitions with their tokens.
	t2, token int64
	shares    []identity.Share
	// confirmed: T3 has shown no other holder since this pod locked its slot, so its work may be published.
	confirmed bool
	// since is when work under the id began. resumed is when this process found a lock on its pod.
	since, resumed time.Time
	// noteAt is when to write the tokens into the receipt.
	noteAt time.Time
	// fenced: the id ended because contact was lost.
	fenced bool
	// givesBack: this process gives back a slot that an earlier process took and failed under.
	givesBack bool

	stops    stops
	failures failures
}

// stops are the calls of Options.Stop that have not ended.
type stops struct {
	// running are the stops under way, each of a different part of the work. number is that of the last stop.
	running []*stop
	number  int
	// kept is the work that did not stop.
	kept kept
	// ended are the results of stops. parts are results for parts of stops that continue; they wait until partsAt. mu guards the three.
	mu           sync.Mutex
	ended, parts []func(duty.LockState) duty.LockState
	partsAt      time.Time
}

// New returns the Work of a process that has begun no work.
func New(o Options) *Work {
	return &Work{o: o, stops: stops{number: o.LastStop}, failures: failures{paused: o.Paused}}
}

// Find records what an earlier process of the pod published last.
func (w *Work) Find(left identity.Identity) { w.left = left }

// Left returns what Find recorded, empty once this pod's own claim has replaced it.
func (w *Work) Left() identity.Identity { return w.left }

// Inherit starts with this identity, without publishing it. It returns the share on which an earlier process may still work.
func (w *Work) Inherit(shown identity.Identity) receipt.Share {
	w.shown = shown
	if w.left.State == "" || w.left.ID == identity.None {
		return receipt.Nothing()
	}
	p := w.left.Partitions
	return receipt.Share{ID: w.left.ID, Of: p.Count, Partitions: p.Owned().Union(p.Stopping())}
}

// Resume uses the tokens of the receipt that the process found on its pod, if the lock is unbroken.
func (w *Work) Resume(t duty.LockState, r receipt.Receipt) {
	w.resumed = w.o.Clock.Now()
	switch {
	case t.Lock.Held.Slot && w.token == 0:
		w.token, w.shares = r.Token, r.Tokens
	case t.Lock.Share.Empty() && t.Working.Empty():
		w.Forget()
	}
}

// Forget drops the tokens, because their lock is gone.
func (w *Work) Forget() { w.token, w.shares, w.confirmed = 0, nil, false }

// Fence ends the id because contact was lost. worked is true if work was under way.
func (w *Work) Fence(worked bool) {
	w.fenced = w.fenced || worked
	w.Forget()
}

// Wrote records the token of a write of the receipt.
func (w *Work) Wrote(lock duty.Lock, token int64) {
	if w.t2 = token; lock.State == receipt.Locks {
		w.shares = w.Tokens(lock.Share.Partitions)
		return
	}
	w.Forget()
	w.left, w.givesBack, w.stops.kept = identity.Identity{}, false, kept{}
}

// Begun records that work on the share may continue, because T3 has shown that no other pod locks it.
func (w *Work) Begun(share receipt.Share) {
	now := w.o.Clock.Now()
	fresh, first := w.begun(share, now)
	switch {
	case first:
		w.o.Tell(event.Taken{ID: share.ID, Token: w.token, Partitions: share.Partitions.String()})
	case fresh.Empty():
		return
	default:
		w.o.Tell(event.Grown{ID: share.ID, Token: w.t2, Partitions: fresh.String()})
	}
	w.noteAt = now.Add(w.o.Pace.AtLeast(noteTime)) // one write notes everything that begins until then
}

// begun returns the new partitions of the share, and whether the slot is new.
func (w *Work) begun(share receipt.Share, now time.Time) (fresh placement.Set, first bool) {
	if first = !w.confirmed; first {
		w.since, w.fenced, w.confirmed = now, false, true
		if w.token == 0 {
			w.token = w.t2
		}
	}
	fresh = share.Partitions
	for _, s := range w.shares {
		fresh = fresh.Minus(s.Set)
	}
	if !fresh.Empty() {
		w.shares = append(w.shares, identity.Share{Set: fresh, Token: w.t2})
	}
	w.left = identity.Identity{}
	return fresh, first
}

// Tokens returns the tokens of those partitions of set that have one.
func (w *Work) Tokens(set placement.Set) (out []identity.Share) {
	for _, s := range w.shares {
		if s.Set = s.Set.Intersect(set); !s.Set.Empty() {
			out = append(out, s)
		}
	}
	return out
}

// Token returns the token of the slot, 0 without a slot.
func (w *Work) Token() int64 { return w.token }

// Confirmed reports whether the pod has its slot: T3 has shown no other holder since its lock.
func (w *Work) Confirmed() bool { return w.confirmed }

// Since returns when the work under the id began.
func (w *Work) Since() time.Time { return w.since }

// Resumed returns when this process last found a lock on its pod.
func (w *Work) Resumed() time.Time { return w.resumed }

// Alarm returns when time alone changes the state of the work.
func (w *Work) Alarm(now time.Time) time.Time {
	return pace.Soonest(now, w.partsDue(), w.failures.rest.until)
}

// Known fills in the fields of known that depend on the work.
func (w *Work) Known(known *duty.Known) {
	known.GivesBack, known.NoteAt = w.givesBack, w.noteAt
	known.Refused, known.Kept = w.stops.kept.until, w.stops.kept.Part
}
