package duty

import (
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Lock is the content of a receipt.
type Lock struct {
	State receipt.State
	// Share is what the receipt locks, Nothing unless State is Locks.
	Share receipt.Share
	// Held is the noted part of Share, on which T3 has let the pod work. Any other pod that locks it came later. The lock of a strict pod notes nothing,
	// because it may have ended with the Lease.
	Held Held
}

// LockOf returns the lock in a receipt.
func LockOf(r receipt.Receipt) Lock {
	l := Lock{State: r.State, Share: r.Share, Held: Held{Slot: r.Token > 0}}
	for _, s := range r.Tokens {
		l.Held.Partitions = l.Held.Partitions.Union(s.Set)
	}
	return l
}

// Held is the part of a lock that its pod has noted as held.
type Held struct {
	Slot       bool
	Partitions placement.Set
}

// within reports whether i notes at least as much as h.
func (h Held) within(i Held) bool { return (i.Slot || !h.Slot) && h.Partitions.Subset(i.Partitions) }

// Blocks returns the part of mine that the other lock denies to this pod. If only mine notes a thing as held, the other pod came later and gives way.
func (other Lock) Blocks(mine Lock) (o Others) {
	switch other.State {
	case receipt.Unreadable:
		return Others{Slot: other.Share.ID == mine.Share.ID, Partitions: mine.Share.Partitions}
	case receipt.Locks:
		later := mine.Held.Partitions.Minus(other.Held.Partitions)
		o.Partitions = other.Share.Partitions.Intersect(mine.Share.Partitions).Minus(later)
		o.Slot = other.Share.ID == mine.Share.ID && (other.Held.Slot || !mine.Held.Slot)
	case receipt.None, receipt.Waits, receipt.GaveUp:
	}
	return o
}

// Others is the part of a share that other pods lock.
type Others struct {
	Slot       bool
	Partitions placement.Set
}

// And returns the union of o and p.
func (o Others) And(p Others) Others {
	return Others{Slot: o.Slot || p.Slot, Partitions: o.Partitions.Union(p.Partitions)}
}

// Any reports whether other pods lock any part of the share.
func (o Others) Any() bool { return o.Slot || !o.Partitions.Empty() }

// Desired is what the process should do, according to any read of the owner, old or new. An old read costs time but is never unsafe.
type Desired struct {
	// Give: give the slot up, because it is at or above the count, a newer pod asks for it, the process ends, or the pod has another owner.
	Give bool
	// Propose is the slot that the map proposes to the pod, with the partitions that the row proposes to that id; Nothing if there is none. A slot at or
	// above the count is not proposed.
	Propose receipt.Share
	// Yield has the partitions that should go to other ids.
	Yield placement.Set
	// WaitAgain: a pod that gave its slot up may wait for another one.
	WaitAgain bool
	// Ends: the process ends.
	Ends bool
	// Show: a pod without a slot writes a receipt, which shows that its program runs.
	Show bool
	// Note: write into the receipt what the pod holds.
	Note bool
}

// Do is a kind of step. Each step of the locks sends at most one request.
type Do int

const (
	// Rest waits until something changes.
	Rest Do = iota
	// ReadPod reads this pod, because its receipt may have changed.
	ReadPod
	// Secure updates this pod's Lease to cover Duty.Share, or releases it if Share is Nothing (strict mode).
	Secure
	// Write swaps the receipt for Duty.Lock.
	Write
	// List lists the receipts of other live pods.
	List
	// Survey lists the Leases of other slots (strict mode).
	Survey
	// Begin begins the work on Duty.Share. Other work continues.
	Begin
	// Stop tells the work to stop, except for that on Duty.Share, and does not wait.
	Stop
	// CallOff calls off the stop of Duty.Part, because that work need not stop any more. It may have stopped already.
	CallOff
	// ReadOwner reads the owner.
	ReadOwner
	// Judge finds out whether the requester should have the slot.
	Judge
	// Plan reads the owner, lists the pods, and writes who should have what. It is the only step with several requests.
	Plan
)

// Duty is what a process does next.
type Duty struct {
	Do    Do
	Lock  Lock
	Share receipt.Share
	Part  Part
	// Why is the reason to rest.
	Why Why
}

// Step returns the next step for the locks, or Rest if there is none.
func Step(t LockState, w Desired) Duty {
	want := t.want(w)
	keep := want.Within(t.Lock.Share)
	surplus := t.beyond(keep)
	switch needless := t.Stopping.Minus(surplus).Minus(t.CalledOff); {
	case !needless.Empty():
		return Duty{Do: CallOff, Part: needless}
	case !t.Known:
		return Duty{Do: ReadPod}
	case t.stopsNow(surplus.Minus(t.Stopping)):
		return Duty{Do: Stop, Share: t.Working.Within(keep)}
	case t.Stopping.All && (t.Working.Empty() || !want.Empty()), t.Lock.State != receipt.Locks && !t.Working.Empty():
		return Duty{Do: Rest, Why: WorkStops}
	case t.Lock.State == receipt.Unreadable: // another program wrote it
		return Duty{Do: Write, Lock: waiting()}
	case t.Lock.State != receipt.Locks:
		return t.wait(w)
	case want.Empty():
		return t.leave(w)
	case t.Strict && !t.hasLease(t.Lock.Share):
		return t.secure(t.Lock.Share)
	case !t.Renewed:
		return Duty{Do: Write, Lock: t.locks(t.Lock.Share)}
	case !t.Listed:
		return Duty{Do: List}
	case t.Strict && !t.Surveyed:
		return Duty{Do: Survey}
	case t.Others.Any() && t.Doubts:
		return Duty{Do: List}
	}
	return t.hold(want, w.Note)
}

// stopsNow reports whether this part of the work should stop now. A process that resumes waits until T3 has let the rest continue, because before T3 it has
// no token for the rest.
func (t LockState) stopsNow(part Part) bool {
	return !part.Empty() && (part.All || t.Unbroken || t.Continues())
}

// Continues reports whether T3 has let the work under the lock continue, except for work on what others lock.
func (t LockState) Continues() bool {
	return t.Renewed && t.Listed && (t.Surveyed || !t.Strict) && !t.Others.Slot && (!t.Doubts || !t.Others.Any())
}

// want returns the part of its lock that the pod should keep, Nothing if it should give the slot up. It excludes what other pods also lock, unless those
// pods may withdraw.
func (t LockState) want(w Desired) receipt.Share {
	want, others := t.Lock.Share, t.Others
	if t.Doubts {
		others = Others{}
	}
	if w.Give || t.Taken || others.Slot {
		return receipt.Nothing()
	}
	if w.Propose.ID == want.ID {
		want.Of = w.Propose.Of
		want.Partitions = want.Partitions.Union(w.Propose.Partitions)
	}
	want.Partitions = want.Partitions.Minus(w.Yield).Minus(others.Partitions)
	if want.Of == 0 {
		want.Partitions = placement.Set{}
	}
	return want
}

// wait returns the next step of a pod that locks nothing. No work is under way.
func (t LockState) wait(w Desired) Duty {
	take := t.Lock.State != receipt.GaveUp && !w.Give && !w.Propose.Empty()
	switch {
	case take && t.Strict && !t.hasLease(w.Propose):
		return t.secure(w.Propose)
	case take:
		return Duty{Do: Write, Lock: t.locks(w.Propose)}
	case w.Ends && (t.Late || !w.Propose.Empty() && t.Lock.State != receipt.GaveUp):
		return Duty{Do: Write, Lock: gaveUp()} // a late proposal then has no effect
	case !t.Lease.Empty():
		return t.secure(receipt.Nothing())
	case t.Lock.State == receipt.GaveUp && w.WaitAgain, t.Lock.State == receipt.None && w.Show:
		return Duty{Do: Write, Lock: waiting()}
	}
	return Duty{Do: Rest, Why: NoSlot}
}

func waiting() Lock { return Lock{State: receipt.Waits, Share: receipt.Nothing()} }

func gaveUp() Lock { return Lock{State: receipt.GaveUp, Share: receipt.Nothing()} }

// locks returns a lock of the share, with a note of what the pod holds: after T3 what it works on, before T3 what the present lock notes.
func (t LockState) locks(share receipt.Share) Lock {
	l := Lock{State: receipt.Locks, Share: share}
	if t.Strict || t.Lock.Share.ID != share.ID {
		return l
	}
	if l.Held = t.Lock.Held; t.confirmed(share) && !t.Working.Empty() {
		l.Held = Held{Slot: true, Partitions: t.Working.Partitions}
	}
	l.Held.Partitions = l.Held.Partitions.Intersect(share.Partitions)
	return l
}

// secure updates this pod's Lease to cover the share. A Lease of another slot is released first.
func (t LockState) secure(share receipt.Share) Duty {
	if !t.Lease.Empty() && t.Lease.ID != share.ID {
		share = receipt.Nothing()
	}
	return Duty{Do: Secure, Share: share}
}

// leave lets the slot go after the work has stopped. Partitions whose work has stopped go to other ids before that. When the pod gives the slot, it first
// releases the Lease, so that the next pod finds it free.
func (t LockState) leave(w Desired) Duty {
	rest := t.Lock.Share
	rest.Partitions = rest.Partitions.Minus(w.Yield.Minus(t.Working.Partitions))
	switch {
	case !t.Working.Empty() && !rest.Equal(t.Lock.Share):
		return Duty{Do: Write, Lock: t.locks(rest)}
	case !t.Working.Empty():
		return Duty{Do: Rest, Why: WorkStops}
	case !w.Give:
		return Duty{Do: Write, Lock: waiting()}
	case !t.Lease.Empty():
		return t.secure(receipt.Nothing())
	}
	return Duty{Do: Write, Lock: gaveUp()}
}

// hold returns the next step of a pod that has what its receipt locks. It locks what it should have and what it still works on. Work begins only on
// partitions where none has to stop.
func (t LockState) hold(want receipt.Share, note bool) Duty {
	mine, lock, works := t.Lock.Share, want, t.Working
	lock.Partitions = want.Partitions.Union(t.Working.Partitions.Intersect(mine.Partitions))
	begin := mine
	works.Partitions = works.Partitions.Intersect(mine.Partitions)
	begin.Partitions = lock.Partitions.Intersect(mine.Partitions).Minus(t.Stopping.Partitions.Minus(t.Working.Partitions))
	switch {
	case !works.Equal(begin): // before it takes more, because others may lock that each time
		return Duty{Do: Begin, Share: begin}
	case !lock.Equal(mine) && t.Strict && !t.Lease.Covers(both(mine, lock)):
		return t.secure(both(mine, lock)) // the receipt locks the old share until it locks the new one
	case !lock.Equal(mine):
		return Duty{Do: Write, Lock: t.locks(lock)}
	case t.Strict && !t.Lease.Equal(mine):
		return t.secure(mine)
	case note && !t.locks(mine).Held.within(t.Lock.Held):
		return Duty{Do: Write, Lock: t.locks(mine)}
	case !t.Stopping.Empty():
		return Duty{Do: Rest, Why: WorkStops}
	}
	return Duty{Do: Rest}
}

// both returns the union of two shares of one slot.
func both(s, t receipt.Share) receipt.Share {
	return receipt.Share{ID: s.ID, Of: max(s.Of, t.Of), Partitions: s.Partitions.Union(t.Partitions)}
}
