package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// trust decides how far a map is believed. us says that idalloc was the last to write the seal, nobody that no manager is known
// to have written it.
func trust(r assignment.Record, us, nobody bool) assignment.Trust {
	switch {
	case !r.Present:
		return assignment.Absent
	case (us || nobody) && (r.Newer > 0 || r.OtherKey != ""):
		return assignment.Unreadable
	case r.Sealed && us:
		return assignment.Clean
	case r.Sealed && nobody:
		return assignment.Untracked
	}
	return assignment.Foreign // what somebody else wrote is damage, whatever it looks like
}

// Clean reports whether the map is wholly trusted.
func (o Owner) Clean() bool { return o.Trust == assignment.Clean }

// Holding is what a process holds, or is about to.
type Holding struct {
	ID  int
	Pod string
	UID types.UID
	// Token is the epoch of the map from which the slot was taken.
	Token int64
	// FenceAfter is the process's own, zero without strict mode.
	FenceAfter time.Duration
}

// Confirms reports whether the owner gives the slot to this pod, and tells every planner to wait for its deadline. A map
// from before the slot was taken confirms nothing.
func (o Owner) Confirms(h Holding) bool {
	return o.Trust.Believed() && (o.Clean() || o.Record.State.Epoch >= h.Token) && o.Names(h.ID, h.Pod, h.UID) && o.Obeys(h.FenceAfter)
}

// Obeys reports whether the owner tells every planner to wait at least this long for a process without contact.
func (o Owner) Obeys(fenceAfter time.Duration) bool { return o.Record.State.FenceAfter >= fenceAfter }

// Refutes reports whether the owner gives the slot to another pod, in a map from after the slot was taken. A clean one is
// taken for that: whoever asks knows no older one.
func (o Owner) Refutes(h Holding) bool {
	if !o.Trust.Believed() || (!o.Clean() && o.Record.State.Epoch <= h.Token) {
		return false
	}
	_, taken := o.Record.State.Slots[h.ID]
	return taken && !o.Names(h.ID, h.Pod, h.UID)
}
