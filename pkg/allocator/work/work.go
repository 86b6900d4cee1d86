// Package work is what the program does under the id of its pod: what is published about it, which part of it is being stopped, and how often it has
// failed. It knows the loop only by what its methods get: the state of the locks, which they return.
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

// noteTime is the least time after T3 until a pod notes its tokens: not while many pods start.
const noteTime = 10 * time.Second

// Options configure Work.
type Options struct {
	Clock   clock.Clock
	Log     *logr.Logger
	Pace    *pace.Pace
	Contact *contact.Contact
	Tell    func(event.Event)
	// Publish, Stop, Divides, LastStop and Paused are those of allocator.Options.
	Publish  func(identity.Identity)
	Stop     func(context.Context, Stop) error
	Divides  bool
	LastStop int
	Paused   bool
}

// Claim is what the loop knows of the claim besides the locks.
type Claim struct {
	// Ends: the process ends.
	Ends bool
	// Over: the time of the pod's Lease is over.
	Over bool
	// Owner is the owner that is published, and Count its number of slots.
	Owner identity.Owner
	Count int
	// Known: there is an owner to act for. Counted: the count may be published, because the owner is known or the pod keeps what it has of the former one.
	Known, Counted bool
	// Requester is the pod that is to get the slot, empty if there is none.
	Requester string
}

// Work is the work of one process. One goroutine may use it at a time.
type Work struct {
	o Options
	// shown was published last if published is true. Before that, what an earlier process published is in force: left.
	shown     identity.Identity
	published bool
	left      identity.Identity
	// t2 is the token of the last write of a lock, token that of the lock of the slot. shares are the locked partitions with their tokens.
	t2, token int64
	shares    []identity.Share
	// confirmed: T3 has shown no other holder since this pod got its slot, so its work may be published.
	confirmed bool
	// since is when work under the id began, and resumed when this process found a lock.
	since, resumed time.Time
	// noteAt is when to write the tokens into the receipt.
	noteAt time.Time
	// fenced: the id ended for lack of contact.
	fenced bool
	// givesBack: this process gives a slot back that an earlier one took and failed under.
	givesBack bool

	stops    stops
	failures failures
}

// stops are the calls of Options.Stop that have not ended.
type stops struct {
	// running are about different parts of the work. number is that of the last one.
	running []*stop
	number  int
	// kept is work that did not stop.
	kept kept
	// ended are results of stops, and parts those about parts of a stop that continues, which wait until partsAt. mu guards the three.
	mu           sync.Mutex
	ended, parts []func(duty.LockState) duty.LockState
	partsAt      time.Time
}

// New returns the work of a process that has begun none.
func New(o Options) *Work {
	return &Work{o: o, stops: stops{number: o.LastStop}, failures: failures{paused: o.Paused}}
}

// Find records what an earlier process of the pod published last.
func (w *Work) Find(left identity.Identity) { w.left = left }

// Left is what Find recorded, empty once this pod's own claim has replaced it.
func (w *Work) Left() identity.Identity { return w.left }

// Inherit begins with this identity, which is not published. It returns where work of an earlier process may be under way.
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

// Forget drops the tokens: the lock that they belong to is gone.
func (w *Work) Forget() { w.token, w.shares, w.confirmed = 0, nil, false }

// Fence ends the id for lack of contact. worked says whether work was under way.
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

// Begun records that work on the share may go on, because T3 has shown that no other pod locks it.
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
	w.noteAt = now.Add(w.o.Pace.AtLeast(noteTime)) // one write serves all that come until then
}

// begun returns which partitions of the share are new, and whether the slot is.
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

// Tokens returns those of these partitions that have a token, with it.
func (w *Work) Tokens(set placement.Set) (out []identity.Share) {
	for _, s := range w.shares {
		if s.Set = s.Set.Intersect(set); !s.Set.Empty() {
			out = append(out, s)
		}
	}
	return out
}

// Token is that of the slot, 0 without one.
func (w *Work) Token() int64 { return w.token }

// Confirmed reports whether the pod has its slot: T3 has shown no other holder since its lock.
func (w *Work) Confirmed() bool { return w.confirmed }

// Since is when the work under the id began.
func (w *Work) Since() time.Time { return w.since }

// Resumed is when this process last found a lock on its pod.
func (w *Work) Resumed() time.Time { return w.resumed }

// Alarm is when time alone changes something here.
func (w *Work) Alarm(now time.Time) time.Time {
	return pace.Soonest(now, w.partsDue(), w.failures.rest.until)
}

// Known adds to known what holds for the work.
func (w *Work) Known(known *duty.Known) {
	known.GivesBack, known.NoteAt = w.givesBack, w.noteAt
	known.Refused, known.Kept = w.stops.kept.until, w.stops.kept.Part
}
