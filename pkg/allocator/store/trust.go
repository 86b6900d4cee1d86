package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// trust decides how far a map is believed. us says that idalloc was the last writer of the seal. nobody says that its writer
// is not known. See tracked.
func trust(r assignment.Record, us, nobody bool) assignment.Trust {
	switch {
	case !r.Present:
		return assignment.Absent
	case (us || nobody) && (r.Newer > 0 || r.Elsewhere()):
		return assignment.Unreadable
	case r.Sealed && us:
		return assignment.Clean
	case r.Sealed && nobody:
		return assignment.Untracked
	}
	return assignment.Foreign // a map that somebody else wrote counts as damaged, even if its seal fits
}

// partitionTrust decides how far the owners of partitions are believed.
func partitionTrust(r assignment.PartitionRecord, us, nobody bool) assignment.Trust {
	switch {
	case !r.Present:
		return assignment.Absent
	case (us || nobody) && r.Newer > 0:
		return assignment.Unreadable
	case r.Sealed && us:
		return assignment.Clean
	case r.Sealed && nobody:
		return assignment.Untracked
	}
	return assignment.Foreign
}

// Clean reports whether the map is wholly trusted.
func (o Owner) Clean() bool { return o.Trust == assignment.Clean }

// PartitionsClean reports whether the map and the owners of the partitions are wholly trusted.
func (o Owner) PartitionsClean() bool { return o.Clean() && o.PartitionTrust == assignment.Clean }

// Holding describes the slot that a process holds, or is about to take.
type Holding struct {
	ID  int
	Pod string
	UID types.UID
	// Token is the epoch of the map from which the slot was taken.
	Token int64
	// FenceAfter is the process's own fence-after, 0 without strict mode.
	FenceAfter time.Duration
}

// Confirms reports whether the owner gives the slot to this pod, with a fence-after that covers the process's own. An
// untracked map with an epoch below the token confirms nothing, because it is from before the take.
func (o Owner) Confirms(h Holding) bool {
	return o.Trust.Believed() && (o.Clean() || o.Record.State.Epoch >= h.Token) && o.Names(h.ID, h.Pod, h.UID) && o.Obeys(h.FenceAfter)
}

// Obeys reports whether the owner's fence-after is at least this long. Then every planner waits long enough for a process
// without contact.
func (o Owner) Obeys(fenceAfter time.Duration) bool { return o.Record.State.FenceAfter >= fenceAfter }

// Refutes reports whether the owner gives the slot to another pod, in a map from after the take. Every clean map counts as
// such: callers do not pass an older one. An untracked map is from after the take if its epoch is above the token.
func (o Owner) Refutes(h Holding) bool {
	if !o.Trust.Believed() || (!o.Clean() && o.Record.State.Epoch <= h.Token) {
		return false
	}
	_, taken := o.Record.State.Slots[h.ID]
	return taken && !o.Names(h.ID, h.Pod, h.UID)
}
