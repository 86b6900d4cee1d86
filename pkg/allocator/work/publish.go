package work

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/invariant"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Shown returns the last published identity.
func (w *Work) Shown() identity.Identity { return w.shown }

// Tell publishes the identity that follows from the lock state, if it has changed.
func (w *Work) Tell(t duty.LockState, c Claim) {
	if state, known := w.state(t, c); known {
		w.Publish(state, t, c)
	}
}

// state returns the state to publish. known is false while the last published identity, perhaps of an earlier process, stays in force.
func (w *Work) state(t duty.LockState, c Claim) (state identity.State, known bool) {
	shows := w.confirmed || w.shown.Assigned()
	locks := t.Lock.State == receipt.Locks
	switch at := t.Working; {
	case c.Ends:
		return identity.StateReleased, true
	case c.Over || w.fenced && at.Empty():
		return identity.StateFenced, true
	case !shows && len(w.stops.running) == 0 && (!t.Known || locks):
		return "", false // the process before this one published it, or this one is about to take a slot
	case at.Empty() || !shows && !locks:
		return identity.StatePending, true
	case t.Known && !locks:
		return identity.StateLost, true
	case t.Stopping.All || at.ID >= c.Count && c.Known:
		return identity.StateDraining, true
	case shows && w.token == 0:
		return "", false // the lock was probably gone for a moment, and the next lock has no token yet
	case shows:
		return identity.StateAssigned, true
	}
	return identity.StatePending, true
}

// grows reports whether an identity gives the program something that the one before did not.
func grows(was, next identity.Identity) bool {
	return next.Assigned() && (!was.Assigned() || was.ID != next.ID || !next.Partitions.Owned().Subset(was.Partitions.Owned()))
}

// falls reports whether the token of something that an identity keeps is lower than in the identity before. Programs fence by tokens, so nobody would accept it.
func falls(was, next identity.Identity) bool {
	if !was.Assigned() || !next.Assigned() {
		return false
	}
	kept := next.Partitions.Shares()
	return was.ID == next.ID && next.Token < was.Token || slices.ContainsFunc(was.Partitions.Shares(), func(s identity.Share) bool {
		return slices.ContainsFunc(kept, func(n identity.Share) bool { return n.Token < s.Token && !n.Set.Intersect(s.Set).Empty() })
	})
}

// Publish publishes the identity with this state, if it has changed.
func (w *Work) Publish(state identity.State, t duty.LockState, c Claim) {
	next := w.shown.Without(state)
	next.Owner = c.Owner
	if c.Counted {
		next.Count = c.Count
	}
	stops := &w.stops
	if state == identity.StateDraining && len(stops.running) > 0 && stops.running[0].All {
		next.Stop = stops.running[0].number
	}
	if at := t.Working; state == identity.StateAssigned {
		next.ID, next.Token = at.ID, w.token
		if w.o.Divides {
			next.Partitions = identity.PartitionsOf(at.Of, w.Tokens(at.Partitions), t.Stopping.Partitions, stops.number)
		}
	} else if w.o.Divides {
		next.Partitions = identity.PartitionsOf(0, nil, placement.Set{}, stops.number)
	}
	if next == w.shown && w.published {
		return
	}
	locked := t.Lock.Share.ID == next.ID && next.Partitions.Owned().Subset(t.Lock.Share.Partitions)
	invariant.Must(!grows(w.shown, next) || w.confirmed && w.token > 0 && locked, "an id or a partition is published only while it is locked and confirmed")
	invariant.Must(!w.published || !falls(w.shown, next), "the token of an id or a partition never falls while a process keeps it")
	w.o.Tell(event.Published{From: w.shown, To: next})
	w.shown, w.published = next, true
	w.o.Publish(next)
}
