package duty

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// View is one version of the owner, as this pod sees it.
type View struct {
	// Gone: the owner does not exist, or no longer owns this pod. Leaves: this pod gives up what it holds of it.
	Gone, Leaves bool
	// Count is the owner's desired number of replicas.
	Count int
	// Propose is what map and row propose to this pod, Nothing if the map does not name it.
	Propose receipt.Share
	// Yield has the partitions of the pod's id that the target gives to others.
	Yield placement.Set
	// Asks: another pod asks for the slot. Asked: that pod should have it.
	Asks, Asked bool
}

// Known is what else a process knows. It affects only waiting times, never safety.
type Known struct {
	// Ends: the process ends. GivesBack: it gives back a slot that an earlier process took and failed under.
	Ends, GivesBack bool
	// Unseen: the owner must be read.
	Unseen bool
	// Retry is when the next request may be sent after a failed one. Again is when the pod may retake what another pod also locked. Refused is when work
	// that did not stop, the work on Kept, may be asked again to stop. NoteAt is when to note in the receipt what the pod holds.
	Retry, Again, Refused, NoteAt time.Time
	Kept                          Part
	// Away: the API server does not answer. If work stopped now, no receipt could record it, and no pod would take over.
	Away bool
	// Show: a plan left this pod without a slot.
	Show bool
	// Turn is when this process may plan. It is zero unless a plan would probably change something.
	Turn time.Time
}

// Why is a reason to rest.
type Why int

// The reasons.
const (
	// Content: the pod has what it should have.
	Content Why = iota
	// NoSlot: no slot is proposed to the pod. The last plan has the reason.
	NoSlot
	// WorkStops: the pod waits for its work to stop.
	WorkStops
	// Later: a request failed, and the next one is sent later.
	Later
	// OwnTurn: another process may plan first.
	OwnTurn
)

// Next returns the next duty, and when to ask again if nothing changes before; the zero time if that is not needed.
func Next(t LockState, v View, k Known, now time.Time) (next Duty, at time.Time) {
	switch next = k.step(t, v, now); {
	case next.Do == Begin || next.Do == Stop || next.Do == CallOff: // no request
		return next, time.Time{}
	case next.Do != Rest && now.Before(k.Retry):
		return Duty{Do: Rest, Why: Later}, k.Retry
	case next.Do != Rest:
		return next, time.Time{}
	}
	for _, alarm := range []time.Time{k.Again, k.Refused, k.NoteAt, k.Turn} {
		if now.Before(alarm) && (at.IsZero() || alarm.Before(at)) {
			at = alarm
		}
	}
	return next, at
}

// step returns the next duty if nothing delays it.
func (k Known) step(t LockState, v View, now time.Time) Duty {
	next := Step(t, k.desired(t, v, now))
	switch {
	case next.Do == ReadPod || next.Do == Begin || next.Do == Stop || next.Do == CallOff:
		return next
	case k.Unseen && !t.Stopping.All && (!k.Ends || next.Do == Rest): // a process that ends gives its slot back regardless of the owner
		return Duty{Do: ReadOwner}
	case next.Do != Rest || t.Stopping.All || v.Gone:
		return next
	case v.Asks && !k.kept(now).All:
		return Duty{Do: Judge}
	case !k.Turn.IsZero() && !now.Before(k.Turn):
		return Duty{Do: Plan}
	case !k.Turn.IsZero() && next.Why == NoSlot:
		next.Why = OwnTurn
	}
	return next
}

// kept returns the work that is not asked to stop for now.
func (k Known) kept(now time.Time) Part {
	if now.Before(k.Refused) {
		return k.Kept
	}
	return Part{}
}

func (k Known) desired(t LockState, v View, now time.Time) Desired {
	w := Desired{Propose: v.Propose, Yield: v.Yield, WaitAgain: !k.Ends && (v.Propose.Empty() || v.Propose.ID >= v.Count), Show: k.Show && !k.Ends}
	w.Ends, w.Note = k.Ends, !k.NoteAt.IsZero() && !now.Before(k.NoteAt)
	id, kept := t.Lock.Share.ID, k.kept(now)
	above := id != receipt.NoID && id >= v.Count && !k.Unseen
	w.Give = k.Ends || k.GivesBack || (v.Leaves || above || v.Asked && !k.Away) && !kept.All
	if w.Yield = w.Yield.Minus(kept.Partitions); k.Away || id >= v.Count && !w.Give { // a slot at or above the count goes as a whole
		w.Yield = placement.Set{}
	}
	switch takes, again := t.Lock.State != receipt.Locks, !now.Before(k.Again); {
	case takes && k.Ends && !v.Gone: // ignore the map's proposal: the process writes that it gave up, and then plans
	case v.Gone || v.Propose.ID >= v.Count || takes && !again:
		w.Propose = receipt.Nothing()
	case !again:
		w.Propose.Partitions = w.Propose.Partitions.Intersect(t.Lock.Share.Partitions)
	}
	return w
}
