package allocator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// provenAfter is how long work must go on under an id for its end not to count as a failure.
const provenAfter = 10 * time.Minute

// noteTime is the least time after T3 until a pod notes its tokens: not while many pods start.
const noteTime = 10 * time.Second

// partsTime is how long what has stopped waits for other parts that were told to, because most stop together: one write is to serve them.
const partsTime = 10 * time.Millisecond

// lastTime bounds the wait of a process that ends for the answer to such a write.
const lastTime = 2 * time.Second

// work is what programs do under the id, and what they are told.
type work struct {
	// shown was published last, and published says that something was. Before that, what an earlier process published is in force.
	shown     identity.Identity
	published bool
	// left is what that was.
	left identity.Identity
	// t2 is the token of the last write of a lock, token that of the lock of the slot, and shares are locked partitions with theirs.
	t2, token int64
	shares    []identity.Share
	// confirmed says that T3 has shown no other holder since this pod got its slot. Then what it works on may be shown.
	confirmed bool
	// since is when work under the id began, and resumed when this process found a lock.
	since, resumed time.Time
	// failures counts how often in a row the program failed.
	failures int
	// stops are under way, each about another part of the work, and number is that of the last.
	stops  []*stop
	number int
	// news takes in how stops ended, and parts what has stopped meanwhile. That can wait until partsAt. mu guards them.
	mu          sync.Mutex
	news, parts []func()
	partsAt     time.Time
	// fenced says that the id ended for lack of contact.
	fenced bool
	// paused says that the process wants no partitions for now.
	paused bool
	rest   rest
	// kept did not stop, and givesBack says that this process gives a slot back that an earlier one took and failed under.
	kept      kept
	givesBack bool
	// listenAt is when to follow the own pod, and noteAt when the receipt is to say what the pod holds.
	listenAt, noteAt time.Time
}

// kept is work that did not stop, and continues until then under the same id. Without an id a slow upgrade would become an outage.
type kept struct {
	duty.Part

	until time.Time
	tries int
}

// minKept and maxKept bound for how long it continues. The time doubles with each try.
const (
	minKept = 30 * time.Second
	maxKept = 10 * time.Minute
)

// more takes in that this part did not stop.
func (k *kept) more(part duty.Part, now time.Time) {
	if !now.Before(k.until) {
		k.Part = duty.Part{}
	}
	k.Part, k.until = k.And(part), now.Add(min(minKept<<min(k.tries, 8), maxKept))
	k.tries++
}

// stop is a call of Options.Stop, about the work that has not stopped yet. end calls it off.
type stop struct {
	duty.Part

	number int
	end    context.CancelFunc
	// requester is the pod that is to have the slot, empty if the stop is about something else.
	requester string
}

// inherit takes in what an earlier process of the pod left.
func (a *Allocator) inherit() {
	w := &a.work
	w.paused, w.number = a.o.Paused, a.o.LastStop
	w.shown = identity.Pending(a.o.Pod, a.o.Namespace)
	w.shown.Owner = a.ref.Owner()
	a.state.Working = w.leftBehind()
	w.failures = a.failuresLeft()
	a.beginRest()
	if a.view.told.MadeRoom && a.diedSoon() {
		a.dropSlot()
	}
}

// resumes takes in what the process found on its pod. The token of an unbroken lock is the one that the pod has noted.
func (w *work) resumes(t duty.LockState, r receipt.Receipt, now time.Time) {
	w.resumed = now
	switch {
	case t.Lock.Held.Slot && w.token == 0:
		w.token, w.shares = r.Token, r.Tokens
	case t.Lock.Share.Empty() && t.Working.Empty():
		w.forget()
	}
}

// forget takes in that the lock is no more.
func (w *work) forget() { w.token, w.shares, w.confirmed = 0, nil, false }

// swapped takes in a write of the receipt.
func (a *Allocator) swapped(before, lock duty.Lock, token int64) {
	a.work.wrote(lock, token)
	if lock.State == receipt.Locks {
		if yielded := before.Share.Partitions.Minus(lock.Share.Partitions); !yielded.Empty() {
			a.happened.Tell(event.Yielded{ID: lock.Share.ID, Partitions: yielded.String()})
		}
		return
	}
	if before.State == receipt.Locks {
		a.happened.Tell(event.Given{About: a.view.owner.About(), ID: before.Share.ID, Count: a.owned(), Requester: a.view.request.by})
	}
	a.view.request = request{}
	a.plans.gave()
}

// wrote takes in a write of the receipt, by its token.
func (w *work) wrote(lock duty.Lock, token int64) {
	if w.t2 = token; lock.State == receipt.Locks {
		w.shares = w.tokens(lock.Share.Partitions)
		return
	}
	w.forget()
	w.left, w.givesBack, w.kept = identity.Identity{}, false, kept{}
}

// begun takes in that work on the share may go on: T3 has shown that no other pod locks it.
func (a *Allocator) begun(share receipt.Share) {
	w, now := &a.work, a.clock.Now()
	fresh, first := w.begun(share, now)
	switch {
	case first:
		a.happened.Tell(event.Taken{ID: share.ID, Token: w.token, Partitions: share.Partitions.String()})
		w.listenAt = now.Add(a.pace.Watch(a.plans.contenders))
	case fresh.Empty():
		return
	default:
		a.happened.Tell(event.Grown{ID: share.ID, Token: w.t2, Partitions: fresh.String()})
	}
	w.noteAt = now.Add(a.pace.AtLeast(noteTime)) // one write is to serve for all that come now
}

// begun returns what of the share is new, and whether all is.
func (w *work) begun(share receipt.Share, now time.Time) (fresh placement.Set, first bool) {
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

// tokens returns those of these partitions that have a token, with it.
func (w *work) tokens(set placement.Set) (out []identity.Share) {
	for _, s := range w.shares {
		if s.Set = s.Set.Intersect(set); !s.Set.Empty() {
			out = append(out, s)
		}
	}
	return out
}

// tell publishes the identity, if it is news.
func (a *Allocator) tell() {
	w, t := &a.work, a.state
	state := identity.StatePending
	shows := w.confirmed || w.shown.Assigned()
	switch at := t.Working; {
	case a.ends:
		state = identity.StateReleased
	case a.lease.Over() || w.fenced && at.Empty():
		if a.lease.Over() {
			a.lease.Fence() // the goroutine that watches the time may not have run yet
		}
		state = identity.StateFenced
	case !shows && len(w.stops) == 0 && (!t.Known || t.Lock.State == receipt.Locks):
		return // what the process before this one published stays in force, or it is about to take a slot
	case at.Empty() || !shows && t.Lock.State != receipt.Locks:
	case t.Known && t.Lock.State != receipt.Locks:
		state = identity.StateLost
	case t.Stopping.All || at.ID >= a.count() && a.view.ok():
		state = identity.StateDraining
	case shows && w.token == 0:
		return // the lock was gone for a moment, it seems: what was published stays in force until the next one has a token
	case shows:
		state = identity.StateAssigned
	}
	a.publish(state)
}

func (a *Allocator) publish(state identity.State) {
	w := &a.work
	next := w.shown.Without(state)
	next.Owner = a.ref.Owner()
	if a.view.ok() || a.keeps() {
		next.Count = a.count()
	}
	if state == identity.StateDraining && len(w.stops) > 0 && w.stops[0].All {
		next.Stop = w.stops[0].number
	}
	if at := a.state.Working; state == identity.StateAssigned {
		next.ID, next.Token = at.ID, w.token
		if a.o.Divides {
			next.Partitions = identity.PartitionsOf(at.Of, w.tokens(at.Partitions), a.state.Stopping.Partitions, w.number)
		}
	} else if a.o.Divides {
		next.Partitions = identity.PartitionsOf(0, nil, placement.Set{}, w.number)
	}
	if next == w.shown && w.published {
		return
	}
	a.happened.Tell(event.Published{From: w.shown, To: next})
	w.shown, w.published = next, true
	a.o.Publish(next)
}

// stop tells the work to stop, except for that on keep. What was told before is still stopping, unless all is to stop now.
func (a *Allocator) stop(keep receipt.Share) {
	w, before := &a.work, a.state.Stopping
	a.state = a.state.Told(keep)
	t := a.state
	s := &stop{Part: t.Stopping.Minus(before), number: w.number + 1}
	if s.All {
		s.Partitions, s.requester = t.Working.Partitions, a.view.request.wanted()
		for _, other := range w.stops {
			other.end()
		}
		w.stops = nil
	}
	var ctx context.Context
	ctx, s.end = context.WithCancel(a.contact.Streams())
	w.stops, w.number = append(w.stops, s), s.number
	a.tell()
	lost, locked := t.Lock.State != receipt.Locks, t.Lock.Share.Covers(receipt.Share{ID: t.Working.ID, Partitions: s.Partitions})
	told := Stop{All: s.All, Partitions: s.Partitions, Number: s.number, Lost: !locked || t.Taken || t.Others.Any()} // another pod may be at it
	told.Stopped = func(set placement.Set) { a.bringsPart(func() { a.partStopped(s, set) }) }
	switch {
	case lost:
		a.happened.Tell(event.Lost{ID: t.Working.ID, Token: w.token, Reason: "the receipt was changed or removed"})
	case !s.All:
		a.happened.Tell(event.Revoked{ID: t.Working.ID, Partitions: s.Partitions.String(), Stop: s.number})
	}
	retry := a.pace.Backoff()
	a.contact.Go(func(context.Context) {
		for {
			err := a.o.Stop(ctx, told)
			if err == nil || !told.Lost || ctx.Err() != nil {
				off := ctx.Err() != nil
				a.brings(func() { a.stopEnded(s, err, off) })
				return
			}
			// Log: an error: the pod's receipt was changed, or another pod locks the same, and the program works on.
			// Do: stop the program, or delete the pod.
			a.log.Error(err, "the work has not stopped, although this pod has lost what it works on; the program is asked again")
			timer := a.clock.NewTimer(retry.Next())
			select {
			case <-timer.C():
			case <-ctx.Done():
				timer.Stop()
			}
		}
	})
}

// brings has the loop take in what a stop brings. It may be called from any goroutine.
func (a *Allocator) brings(takeIn func()) {
	a.work.mu.Lock()
	defer a.work.mu.Unlock()
	a.work.news = append(a.work.news, takeIn)
	a.contact.Ring()
}

// bringsPart has the loop take in soon that a part of the work has stopped. It may be called from any goroutine.
func (a *Allocator) bringsPart(takeIn func()) {
	w := &a.work
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.parts) == 0 {
		w.partsAt = a.clock.Now().Add(partsTime)
		a.contact.Ring()
	}
	w.parts = append(w.parts, takeIn)
}

// hearStops takes in what stops have brought.
func (a *Allocator) hearStops() {
	w := &a.work
	w.mu.Lock()
	var heard []func()
	if len(w.news) > 0 || !a.clock.Now().Before(w.partsAt) {
		heard = slices.Concat(w.parts, w.news)
		w.parts, w.news = nil, nil
	}
	w.mu.Unlock()
	for _, takeIn := range heard {
		takeIn()
	}
}

// partsDue is when the loop takes in parts of the work that have stopped, the zero time if there are none.
func (w *work) partsDue() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.parts) == 0 {
		return time.Time{}
	}
	return w.partsAt
}

// callOff says that the work on this part need not stop any more that was told to. What was told to stop together with it is told again.
func (a *Allocator) callOff(part duty.Part) {
	for _, s := range a.work.stops {
		if part.All || !s.Partitions.Intersect(part.Partitions).Empty() {
			a.state = a.state.Recalled(s.Part)
			s.end()
			a.notHandedOver(s, event.ObstacleCalledOff, "the work need not stop any more")
		}
	}
}

// notHandedOver tells that the slot does not go to the pod that asked for it, if one did.
func (a *Allocator) notHandedOver(s *stop, why event.Obstacle, detail string) {
	if s.requester != "" {
		a.happened.Tell(event.NotHandedOver{ID: a.state.Lock.Share.ID, Requester: s.requester, Why: why, Detail: detail})
	}
}

// leftBehind is the work that an earlier process of the pod may have left.
func (w *work) leftBehind() receipt.Share {
	if w.left.State == "" || w.left.ID == identity.None {
		return receipt.Nothing()
	}
	p := w.left.Partitions
	return receipt.Share{ID: w.left.ID, Of: p.Count, Partitions: p.Owned().Union(p.Stopping())}
}

// partStopped takes in that the work on partitions has stopped. A stop counts no more when all work was told to stop after it.
func (a *Allocator) partStopped(s *stop, set placement.Set) {
	if slices.Contains(a.work.stops, s) {
		a.workStopped(duty.Part{Partitions: set.Intersect(s.Partitions)})
		s.Partitions = s.Partitions.Minus(set) // the work on these may begin again before the stop ends
	}
}

func (a *Allocator) workStopped(part duty.Part) {
	w, on := &a.work, a.state.Working.ID
	a.state = a.state.Stopped(part)
	if part.All {
		w.confirmed = false
	}
	if part.All && a.state.Lock.Share.ID != on {
		w.forget() // another program changed the receipt meanwhile, or removed it: the next lock is another one
	}
}

// stopEnded takes in how a stop ended, and whether it was called off.
func (a *Allocator) stopEnded(s *stop, err error, off bool) {
	s.end()
	at := slices.Index(a.work.stops, s)
	if at < 0 {
		return
	}
	if a.work.stops = slices.Delete(a.work.stops, at, at+1); err == nil {
		a.workStopped(s.Part)
		return
	}
	if a.state = a.state.Resumed(s.Part); !off && !s.Empty() {
		// Log: an error: `Options.Stop` returned an error, or the drain hook failed, or `--drain-timeout` is over. The error quotes
		// the end of the command's output. The id, or the partitions, stay with this pod.
		// Do: find out why the program does not stop.
		a.log.Error(err, "the work has not stopped; the pod keeps its id or partitions, and the program is asked again")
		a.notHandedOver(s, event.ObstacleContinues, err.Error())
		a.work.kept.more(s.Part, a.clock.Now())
	}
}
