package work

import (
	"context"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// partsTime is how long a stopped part waits for other parts that are being stopped. Most parts stop together, and one write then serves them all.
const partsTime = 10 * time.Millisecond

// minKept and maxKept bound how long work that did not stop continues before the next try. The time doubles with each try.
const (
	minKept = 30 * time.Second
	maxKept = 10 * time.Minute
)

// Stop describes the work to stop.
type Stop struct {
	// All: all work must stop. Otherwise only that on Partitions.
	All        bool
	Partitions placement.Set
	// Call Stopped with some of Partitions when their work has stopped before Options.Stop returns. Other pods can then get them earlier. It does not
	// block.
	Stopped func(placement.Set)
	// Number identifies this stop.
	Number int
	// Lost: another pod may already work on it, so the stop is urgent.
	Lost bool
}

// stop is a call of Options.Stop. Part is the work that has not stopped yet. end calls the stop off.
type stop struct {
	duty.Part

	number int
	end    context.CancelFunc
	// requester is the pod that should get the slot, empty if the stop has another reason.
	requester string
}

// kept is work that did not stop, and continues under the same id until then. If the pod gave up its id instead, a slow upgrade would become an outage.
type kept struct {
	duty.Part

	until time.Time
	tries int
}

// more adds a part that did not stop.
func (k *kept) more(part duty.Part, now time.Time) {
	if !now.Before(k.until) {
		k.Part = duty.Part{}
	}
	k.Part, k.until = k.And(part), now.Add(min(minKept<<min(k.tries, 8), maxKept))
	k.tries++
}

// Stop stops all work except for that on keep. Earlier stops continue, but a stop of all work replaces them.
func (w *Work) Stop(t duty.LockState, keep receipt.Share, c Claim) duty.LockState {
	before := t.Stopping
	t = t.Told(keep)
	s := &stop{Part: t.Stopping.Minus(before), number: w.stops.number + 1}
	if s.All {
		s.Partitions, s.requester = t.Working.Partitions, c.Requester
		for _, other := range w.stops.running {
			other.end()
		}
		w.stops.running = nil
	}
	var ctx context.Context
	ctx, s.end = context.WithCancel(w.o.Contact.Streams())
	w.stops.running, w.stops.number = append(w.stops.running, s), s.number
	w.Tell(t, c)
	lost, locked := t.Lock.State != receipt.Locks, t.Lock.Share.Covers(receipt.Share{ID: t.Working.ID, Partitions: s.Partitions})
	told := Stop{All: s.All, Partitions: s.Partitions, Number: s.number, Lost: !locked || t.Taken || t.Others.Any()} // another pod may already work on it
	told.Stopped = func(set placement.Set) {
		w.partEnds(func(t duty.LockState) duty.LockState { return w.partStopped(t, s, set) })
	}
	switch {
	case lost:
		w.o.Tell(event.Lost{ID: t.Working.ID, Token: w.token, Reason: "the receipt was changed or removed"})
	case !s.All:
		w.o.Tell(event.Revoked{ID: t.Working.ID, Partitions: s.Partitions.String(), Stop: s.number})
	}
	retry := w.o.Pace.Backoff()
	w.o.Contact.Go(func(context.Context) { w.await(ctx, s, told, retry) })
	return t
}

// await calls Options.Stop until the work has stopped. If the pod still locks that work, await ends after the first error, and the work continues.
func (w *Work) await(ctx context.Context, s *stop, told Stop, retry *pace.Backoff) {
	for {
		err := w.o.Stop(ctx, told)
		if err == nil || !told.Lost || ctx.Err() != nil {
			off := ctx.Err() != nil
			w.ends(func(t duty.LockState) duty.LockState { return w.stopEnded(t, s, err, off) })
			return
		}
		// Log: an error: the pod's receipt was changed, or another pod locks the same, and the program is still running.
		// Do: stop the program, or delete the pod.
		w.o.Log.Error(err, "the program is still running although this pod lost its id; asking it to stop again")
		timer := w.o.Clock.NewTimer(retry.Next())
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// ends passes the result of a stop to Hear. It may be called from any goroutine.
func (w *Work) ends(result func(duty.LockState) duty.LockState) {
	w.stops.mu.Lock()
	defer w.stops.mu.Unlock()
	w.stops.ended = append(w.stops.ended, result)
	w.o.Contact.Ring()
}

// partEnds passes the result for a stopped part to Hear, within partsTime. It may be called from any goroutine.
func (w *Work) partEnds(result func(duty.LockState) duty.LockState) {
	s := &w.stops
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parts) == 0 {
		s.partsAt = w.o.Clock.Now().Add(partsTime)
		w.o.Contact.Ring()
	}
	s.parts = append(s.parts, result)
}

// Hear returns the lock state after the stops that have ended.
func (w *Work) Hear(t duty.LockState) duty.LockState {
	s := &w.stops
	s.mu.Lock()
	var heard []func(duty.LockState) duty.LockState
	if len(s.ended) > 0 || !w.o.Clock.Now().Before(s.partsAt) {
		heard = slices.Concat(s.parts, s.ended)
		s.parts, s.ended = nil, nil
	}
	s.mu.Unlock()
	for _, result := range heard {
		t = result(t)
	}
	return t
}

// partsDue returns when Hear returns the stopped parts, or the zero time if there are none.
func (w *Work) partsDue() time.Time {
	s := &w.stops
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parts) == 0 {
		return time.Time{}
	}
	return s.partsAt
}

// CallOff ends the stops of this part, because its work need not stop any more. Other parts of the same stops are stopped again later.
func (w *Work) CallOff(t duty.LockState, part duty.Part) duty.LockState {
	for _, s := range w.stops.running {
		if part.All || !s.Partitions.Intersect(part.Partitions).Empty() {
			t = t.Recalled(s.Part)
			s.end()
			w.notHandedOver(t, s, event.ObstacleCalledOff, "the work need not stop any more")
		}
	}
	return t
}

// notHandedOver reports that the requester, if there is one, does not get the slot.
func (w *Work) notHandedOver(t duty.LockState, s *stop, why event.Obstacle, detail string) {
	if s.requester != "" {
		w.o.Tell(event.NotHandedOver{ID: t.Lock.Share.ID, Requester: s.requester, Why: why, Detail: detail})
	}
}

// partStopped records that the work on these partitions has stopped, unless a stop of all work has replaced s.
func (w *Work) partStopped(t duty.LockState, s *stop, set placement.Set) duty.LockState {
	if slices.Contains(w.stops.running, s) {
		t = w.stopped(t, duty.Part{Partitions: set.Intersect(s.Partitions)})
		s.Partitions = s.Partitions.Minus(set) // the work on these may begin again before the stop ends
	}
	return t
}

// stopped records that this part of the work has stopped.
func (w *Work) stopped(t duty.LockState, part duty.Part) duty.LockState {
	on := t.Working.ID
	t = t.Stopped(part)
	if part.All {
		w.confirmed = false
	}
	if part.All && t.Lock.Share.ID != on {
		w.Forget() // another program changed or removed the receipt meanwhile: the next lock is a new one
	}
	return t
}

// stopEnded records how a stop ended, and whether it was called off.
func (w *Work) stopEnded(t duty.LockState, s *stop, err error, off bool) duty.LockState {
	s.end()
	at := slices.Index(w.stops.running, s)
	if at < 0 {
		return t
	}
	if w.stops.running = slices.Delete(w.stops.running, at, at+1); err == nil {
		return w.stopped(t, s.Part)
	}
	if t = t.Resumed(s.Part); !off && !s.Empty() {
		// Log: an error: `Options.Stop` returned an error, or the drain hook failed, or `--drain-timeout` is over. The error quotes
		// the end of the command's output. The id, or the partitions, stay with this pod.
		// Do: find out why the program does not stop.
		w.o.Log.Error(err, "the program is still running; the pod keeps its id or partitions, and asks it to stop again")
		w.notHandedOver(t, s, event.ObstacleContinues, err.Error())
		w.stops.kept.more(s.Part, w.o.Clock.Now())
	}
	return t
}
