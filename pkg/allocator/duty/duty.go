package duty

import "github.com/idalloc/idalloc/pkg/partition/placement"

// NoID is the id of what has none.
const NoID = -1

// State is what a receipt says of its pod.
type State int

const (
	// None is no receipt, or one that is not of this pod.
	None State = iota
	// Waits says that the pod waits for a slot.
	Waits
	// GaveUp says that the pod has given its slot up. It takes nothing before it waits again.
	GaveUp
	// Locks says that the pod locks a slot, and perhaps partitions.
	Locks
)

// Share is a slot with partitions: what a receipt locks, what work may be under way on, or what the owner proposes.
type Share struct {
	// ID is the slot, or NoID.
	ID int
	// Divides says that the id is one of those that divide the partitions, even if it has none of them yet.
	Divides    bool
	Partitions placement.Set
}

// Nothing is no slot and no partition.
func Nothing() Share { return Share{ID: NoID} }

// Empty reports whether s has neither a slot nor a partition.
func (s Share) Empty() bool { return s.ID == NoID && s.Partitions.Empty() }

// within returns what of s is in t, too. Partitions of another id are not.
func (s Share) within(t Share) Share {
	if s.ID != t.ID {
		return Nothing()
	}
	return Share{ID: s.ID, Divides: s.Divides && t.Divides, Partitions: s.Partitions.Intersect(t.Partitions)}
}

func (s Share) equal(t Share) bool {
	return s.ID == t.ID && s.Divides == t.Divides && s.Partitions.Equal(t.Partitions)
}

// Lock is what a receipt says.
type Lock struct {
	State State
	// Share is what it locks, Nothing unless State is Locks.
	Share Share
}

// Tenure is what a process knows of its own pod. Each field has one writer: the step that Next asked for.
type Tenure struct {
	// Known says that Lock stands on the pod: no write of this process is without an answer. It is false when the process starts.
	Known bool
	// Lock is the receipt, as it was read or written last.
	Lock Lock
	// Renewed says that this process has written Lock since it read it (T2).
	Renewed bool
	// Listed says that the other receipts were listed after Lock was written (T3), and Others what they lock of Lock.
	Listed bool
	Others Others
	// Working is where work may be under way: what was begun and has not stopped. A process that starts does not know, and says
	// Unsure: an earlier process may have left work on anything.
	Working Share
	Unsure  bool
	// Stopping says that the work on what Keep lacks was told to stop, and has not stopped.
	Stopping bool
	Keep     Share
	// Doubts says that Lock is an earlier process's, and that the other receipt may be withdrawn: its pod came later. The loop clears it
	// when that has lasted long enough.
	Doubts bool
}

// Others is what other pods lock of a share.
type Others struct {
	Slot       bool
	Partitions placement.Set
}

func (o Others) any() bool { return o.Slot || !o.Partitions.Empty() }

// Wish is what is wanted of the process now, by any read of the owner, old or new.
type Wish struct {
	// Give says that the slot is to be given up: it is above the count, a newer pod asks for it, the pod ends, or its owner is another one.
	Give bool
	// Propose is the slot that the map proposes to the pod, with the partitions that the row proposes to that id; Nothing if there is none.
	// A slot at or above the count is not proposed.
	Propose Share
	// Yield has the partitions that go to other ids.
	Yield placement.Set
	// WaitAgain says that a pod that gave its slot up may wait for another one.
	WaitAgain bool
}

// Do is a kind of step.
type Do int

const (
	// Rest is nothing until something changes.
	Rest Do = iota
	// Read is to read the own pod, because it is not known what stands on it.
	Read
	// Write is to swap the receipt for Duty.Lock.
	Write
	// List is to list the receipts of other live pods.
	List
	// Begin is to begin the work on Duty.Share beside what is under way already.
	Begin
	// Stop is to tell the work to stop, except for that on Duty.Share. It does not wait for it.
	Stop
)

// Duty is what a process does next.
type Duty struct {
	Do    Do
	Lock  Lock
	Share Share
}

// Next returns what the process does next. A wish that is out of date costs time and is never unsafe.
func Next(t Tenure, w Wish) Duty {
	switch {
	case !t.Known:
		return Duty{Do: Read}
	case t.Stopping:
		return Duty{Do: Rest}
	case t.Unsure || !covers(t.Lock.Share, t.Working): // an earlier process's work, or the receipt was taken away
		return Duty{Do: Stop, Share: t.Working.within(t.Lock.Share)}
	case t.Lock.State != Locks:
		return t.wait(w)
	case w.Give:
		return t.give()
	case !t.Renewed:
		return Duty{Do: Write, Lock: t.Lock}
	case !t.Listed:
		return Duty{Do: List}
	case t.Others.any():
		return t.withdraw()
	}
	return t.hold(w)
}

// covers reports whether the share has all that the work is on.
func covers(share, work Share) bool {
	return work.Empty() || work.ID == share.ID && work.Partitions.Subset(share.Partitions)
}

// wait is for a pod that locks nothing. No work is under way.
func (t Tenure) wait(w Wish) Duty {
	switch {
	case t.Lock.State == None, t.Lock.State == GaveUp && w.WaitAgain:
		return Duty{Do: Write, Lock: Lock{State: Waits, Share: Nothing()}}
	case t.Lock.State == Waits && !w.Give && w.Propose.ID != NoID:
		return Duty{Do: Write, Lock: Lock{State: Locks, Share: w.Propose}}
	}
	return Duty{Do: Rest}
}

// give lets the slot go, once the work has stopped.
func (t Tenure) give() Duty {
	if !t.Working.Empty() {
		return Duty{Do: Stop, Share: Nothing()}
	}
	return Duty{Do: Write, Lock: Lock{State: GaveUp, Share: Nothing()}}
}

// withdraw takes out of the receipt what other pods lock, too. An earlier process's work on it stops before.
func (t Tenure) withdraw() Duty {
	if t.Doubts {
		return Duty{Do: List}
	}
	rest, lock := Nothing(), Lock{State: Waits, Share: Nothing()}
	if !t.Others.Slot {
		rest = t.Lock.Share
		rest.Partitions = rest.Partitions.Minus(t.Others.Partitions)
		lock = Lock{State: Locks, Share: rest}
	}
	return t.shrink(rest, lock)
}

// shrink writes a lock of less, once the work on the rest has stopped.
func (t Tenure) shrink(to Share, lock Lock) Duty {
	if !covers(to, t.Working) {
		return Duty{Do: Stop, Share: t.Working.within(to)}
	}
	return Duty{Do: Write, Lock: lock}
}

// hold is for a pod that has what its receipt locks.
func (t Tenure) hold(w Wish) Duty {
	mine := t.Lock.Share
	want := mine
	want.Partitions = mine.Partitions.Minus(w.Yield)
	if w.Propose.ID == mine.ID {
		want.Divides = w.Propose.Divides
		want.Partitions = want.Partitions.Union(w.Propose.Partitions.Minus(w.Yield))
	}
	if !want.Divides {
		want.Partitions = placement.Set{}
	}
	switch {
	case !want.equal(mine):
		return t.shrink(mine.within(want), Lock{State: Locks, Share: want})
	case !t.Working.equal(mine):
		return Duty{Do: Begin, Share: mine}
	}
	return Duty{Do: Rest}
}
