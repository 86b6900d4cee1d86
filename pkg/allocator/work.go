package allocator

import (
	"context"
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

// lastTime bounds the wait of a process that ends for the answer to such a write.
const lastTime = 2 * time.Second

// work is what programs do under the id, and what they are told.
type work struct {
	a *Allocator
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
	// stopping is the stop under way, recall calls it off, and stops gets its result. number is that of the last.
	stopping *Stop
	recall   context.CancelFunc
	stops    chan error
	number   int
	// fenced says that the id ended for lack of contact.
	fenced bool
	// paused says that the process wants no partitions for now.
	paused bool
	rest   rest
	// listenAt is when to follow the own pod.
	listenAt time.Time
}

// begin takes in what an earlier process of the pod left.
func (w *work) begin(a *Allocator) {
	w.a, w.paused, w.stops, w.number = a, a.o.Paused, make(chan error, 1), a.o.LastStop
	w.shown = identity.Pending(a.o.Pod, a.o.Namespace)
	w.shown.Owner = a.ref.Owner()
	if a.o.Left != nil {
		w.left = a.o.Left(string(a.o.PodUID))
	}
	if w.left.State == "" || w.left.ID == identity.None {
		a.tenure = a.tenure.Told(receipt.Nothing()).Stopped() // nothing is left of the work of an earlier process
	}
	w.failures = a.receipt().Failures()
	a.beginRest()
	w.resumes(a.clock.Now())
}

// resumes takes in what the process found on its pod. The token of an unbroken lock is the one that the pod has noted.
func (w *work) resumes(now time.Time) {
	w.resumed = now
	switch t := w.a.tenure; {
	case t.Lock.Held.Slot && w.token == 0:
		r := w.a.receipt()
		w.token, w.shares = r.Token, r.Tokens
	case t.Lock.Share.Empty() && t.Working.Empty():
		w.forget()
	}
}

// forget takes in that the lock is no more.
func (w *work) forget() { w.token, w.shares, w.confirmed = 0, nil, false }

// wrote takes in a write of the receipt.
func (w *work) wrote(before, lock duty.Lock, token int64) {
	if w.t2 = token; lock.State == receipt.Locks {
		w.shares = w.tokens(lock.Share.Partitions)
		if yielded := before.Share.Partitions.Minus(lock.Share.Partitions); !yielded.Empty() {
			w.a.happened.Tell(event.Yielded{ID: lock.Share.ID, Partitions: yielded.String()})
		}
		return
	}
	if before.State == receipt.Locks {
		w.a.happened.Tell(event.Given{About: w.a.view.owner.About(), ID: before.Share.ID, Count: w.a.view.owner.Count, Requester: w.a.view.request.by})
	}
	w.forget()
	w.left = identity.Identity{}
	w.a.view.request, w.a.known.GivesBack = request{}, false
	w.a.plans.gave()
}

// begun takes in that work on the share may go on: T3 has shown that nobody else locks it.
func (w *work) begun(share receipt.Share) {
	first := !w.confirmed
	if first {
		w.since, w.fenced, w.confirmed = w.a.clock.Now(), false, true
		if w.token == 0 {
			w.token = w.t2
		}
		w.a.happened.Tell(event.Taken{ID: share.ID, Token: w.token, Partitions: share.Partitions.String()})
		w.listenAt = w.since.Add(w.a.pace.Watch(w.a.plans.contenders))
	}
	fresh := share.Partitions
	for _, s := range w.shares {
		fresh = fresh.Minus(s.Set)
	}
	if !fresh.Empty() {
		w.shares = append(w.shares, identity.Share{Set: fresh, Token: w.t2})
		if !first {
			w.a.happened.Tell(event.Grown{ID: share.ID, Token: w.t2, Partitions: fresh.String()})
		}
	}
	if first || !fresh.Empty() { // one write is to serve for all that come now
		w.a.known.NoteAt = w.a.clock.Now().Add(w.a.pace.Part(noteTime))
	}
	w.left = identity.Identity{}
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
func (w *work) tell() {
	a, t := w.a, w.a.tenure
	state, ends := identity.StatePending, t.Stopping && t.Keep.Empty()
	switch at := t.Working; {
	case a.known.Ends:
		state = identity.StateReleased
	case a.lease.Over() || w.fenced && at.Empty():
		if a.lease.Over() {
			a.lease.Fence() // the goroutine that watches the time may not have run yet
		}
		state = identity.StateFenced
	case !w.confirmed && w.stopping == nil && (!t.Known || t.Lock.State == receipt.Locks):
		return // what the process before this one published stays in force, or it is about to take a slot
	case at.Empty() || t.Unsure:
	case t.Known && t.Lock.State != receipt.Locks:
		state = identity.StateLost
	case ends || at.ID >= a.count() && a.view.ok():
		state = identity.StateDraining
	case w.confirmed:
		state = identity.StateAssigned
	}
	w.publish(state)
}

// ended publishes that there is no id for good.
func (w *work) ended(state identity.State) {
	if state == identity.StateLost {
		w.a.lease.Fence()
		w.a.tenure.Working = receipt.Nothing()
	}
	w.publish(state)
}

func (w *work) publish(state identity.State) {
	a := w.a
	next := w.shown.Without(state)
	next.Owner = a.ref.Owner()
	if a.view.ok() {
		next.Count = a.count()
	}
	if state == identity.StateDraining && w.stopping != nil && w.stopping.All {
		next.Stop = w.stopping.Number
	}
	if at := a.tenure.Working; state == identity.StateAssigned {
		next.ID, next.Token = at.ID, w.token
		if a.o.Divides {
			var stopping placement.Set
			if w.stopping != nil {
				stopping = w.stopping.Partitions
			}
			next.Partitions = identity.PartitionsOf(at.Of, w.tokens(at.Partitions), stopping, w.number)
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

// stop tells the work to stop, except for that on keep.
func (a *Allocator) stop(keep receipt.Share) {
	w := &a.work
	working := a.tenure.Working
	if a.tenure.Unsure && !w.confirmed {
		working = w.leftBehind()
	}
	a.tenure = a.tenure.Told(keep)
	if keep.Covers(working) { // no work can be under way beside it
		a.stopEnded(nil)
		return
	}
	w.number++
	lost := a.tenure.Lock.State != receipt.Locks
	stop := Stop{All: keep.Empty() || working.ID != keep.ID, Partitions: working.Partitions.Minus(keep.Partitions), Number: w.number}
	stop.Lost = lost || a.tenure.Taken || a.tenure.Others.Any() // another pod may be at it
	w.stopping = &stop
	w.tell()
	switch {
	case lost && !working.Empty():
		a.happened.Tell(event.Lost{ID: working.ID, Token: w.token, Reason: "the receipt was changed or removed"})
	case !stop.All:
		a.happened.Tell(event.Revoked{ID: working.ID, Partitions: stop.Partitions.String(), Stop: stop.Number})
	}
	var streams context.Context
	streams, w.recall = context.WithCancel(a.contact.Streams())
	retry := a.pace.Backoff()
	a.contact.Go(func(context.Context) {
		for {
			err := a.o.Stop(streams, stop)
			if err == nil || !stop.Lost || streams.Err() != nil {
				w.stops <- err
				a.contact.Ring()
				return
			}
			// Log: an error: somebody changed the pod's receipt, or another pod locks the same, and the program goes on.
			// Do: stop the program, or delete the pod.
			a.log.Error(err, "the work has not stopped; what it is on is not this pod's any more, and the program is asked again")
			timer := a.clock.NewTimer(retry.Next())
			select {
			case <-timer.C():
			case <-streams.Done():
				timer.Stop()
			}
		}
	})
}

// callOff says that the work need not stop any more that was told to.
func (a *Allocator) callOff() {
	a.tenure = a.tenure.Recalled()
	a.work.recall()
}

// leftBehind is the work that an earlier process of the pod may have left.
func (w *work) leftBehind() receipt.Share {
	if w.left.State == "" {
		return receipt.Nothing()
	}
	return receipt.Share{ID: w.left.ID, Partitions: w.left.Partitions.Owned().Union(w.left.Partitions.Stopping())}
}

// forgetStop ends a stop whose goroutine has ended with the streams.
func (w *work) forgetStop() {
	if w.stopping == nil {
		return
	}
	select {
	case err := <-w.stops:
		w.a.stopEnded(err)
	default:
	}
}

// stopEnded takes in how a stop ended.
func (a *Allocator) stopEnded(err error) {
	w := &a.work
	recalled := a.tenure.CalledOff
	if w.stopping = nil; w.recall != nil {
		w.recall()
	}
	if err == nil {
		w.confirmed = w.confirmed && !a.tenure.Keep.Empty()
		a.tenure = a.tenure.Stopped()
		return
	}
	a.tenure = a.tenure.Resumed()
	if a.contact.Streams().Err() == nil && !recalled {
		// Log: an error: `Options.Stop` returned an error, or the drain hook failed, or `--drain-timeout` is over. The error quotes
		// the end of the command's output. The id, or the partitions, stay with this pod.
		// Do: find out why the program does not stop.
		a.log.Error(err, "the work has not stopped; what it is on is kept, and the program is asked again")
		a.refuse()
	}
}
