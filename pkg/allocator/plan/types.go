package plan

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// NoOrdinal is Pod.Ordinal of a pod that has none.
const NoOrdinal = -1

// Pod is a live pod: it exists and is neither Succeeded nor Failed.
type Pod struct {
	Name string
	UID  string
	// Created is the pod's creationTimestamp.
	Created time.Time
	// Controller is the UID of the pod's direct controller; pods that share it are siblings.
	Controller string
	// Owned says that the owner's selector matches the pod. A pod that was relabelled is not, but
	// keeps its slot.
	Owned bool
	// Terminating says that the pod is being deleted. It is alive until it is gone.
	Terminating bool
	// Deadline is the end of a Terminating pod's grace period.
	Deadline time.Time
	// Ordinal is the pod's index (StatefulSet, Indexed Job) counted from 0, or NoOrdinal.
	Ordinal int
	// Receipt is the pod's own receipt for this owner, nil without one.
	Receipt *assignment.Receipt
}

func (p Pod) locks() bool  { return p.Receipt.Locks() }
func (p Pod) gaveUp() bool { return p.Receipt != nil && p.Receipt.GaveUp }

// showsLife reports whether the pod's program is known to have run: it wrote a receipt. Other pods may never start.
func (p Pod) showsLife() bool { return p.Receipt != nil }

// failed reports whether the pod's program ended by itself soon after it took a slot, and did not do better since.
func (p Pod) failed() bool { return p.Receipt != nil && p.Receipt.Failed > 0 }

// gives reports whether the pod's work under id has stopped and its entry is of no use any more.
func (p Pod) gives(id int) bool { return p.gaveUp() && p.Receipt.Gives && p.Receipt.ID == id }

// Intent is what the planner wants for itself.
type Intent int

const (
	// Claim asks for a slot, if I have none.
	Claim Intent = iota
	// Move gives my slot, and asks for another one like any waiter. The work has
	// stopped and my receipt says that I gave up.
	Move
	// Release gives my slot and asks for no other.
	Release
)

// Input is all that Plan looks at.
type Input struct {
	// Count is the owner's desired number, N.
	Count int
	// State is the owner's state as read, before the pods were listed.
	State assignment.State
	// Trust says how far State is believed.
	Trust assignment.Trust
	// FenceOurs says that idalloc wrote State's fence-after last, although somebody else wrote the rest.
	FenceOurs bool
	// Pods are all live pods that matter: the owner's, those with a receipt, and every holder that
	// was not confirmed dead.
	Pods []Pod
	// Me is the planner's pod name; empty for a sweep, which gives out nothing.
	Me     string
	Intent Intent
	// Rollout says where me stands in a rolling update; the zero value asks nobody for a slot.
	Rollout Rollout
	// Insist lets me, although it gave up, have a slot that nobody else has taken for long.
	Insist bool
	// StandsBack says that me's program failed and that it is too early to have another pod's work stopped for it again.
	StandsBack bool
	// FenceAfter is me's own, zero without strict mode.
	FenceAfter time.Duration
	// Ended are the slots of dead holders whose processes are known to have ended. In strict mode the
	// slots of the others go into quarantine.
	Ended map[int]bool
	// Served are the epochs whose quarantine is over, by me's own clock.
	Served map[int64]bool
	// Commit asks for a write even if only the epoch changes: a pod that gave up before may take
	// only from a write of its own.
	Commit bool
	// Room says how full the owner's annotations are.
	Room assignment.Room
	// Now dates the epoch.
	Now time.Time
}

// Rollout is what a pod of a Deployment knows of a rolling update.
type Rollout struct {
	// Current says that me belongs to the owner's current revision. Pods of other controllers are of
	// an older one then.
	Current bool
	// MaxUnavailable is the Deployment's, resolved to a number of pods.
	MaxUnavailable int
	// Available is how many of me's siblings are available, me included.
	Available int
}

// Cause says why a slot was freed.
type Cause string

// Causes.
const (
	// CauseDead: the holder is gone, Succeeded or Failed.
	CauseDead Cause = "dead"
	// CauseReplaced: a pod with the holder's name lives, but it is another pod.
	CauseReplaced Cause = "replaced"
	// CauseGiven: the planner gave its own slot.
	CauseGiven Cause = "given"
	// CauseUnsealed: the map was changed by somebody else and no receipt backs the entry.
	CauseUnsealed Cause = "unsealed"
)

// Change is one slot that differs between the state that was read and the next one.
type Change struct {
	ID  int
	Pod string
	// Cause is set on freed slots.
	Cause Cause
}

// Decision is the result of Plan.
type Decision struct {
	// Next is the state to commit, nil if there is nothing to do, or, where TooLarge is set, nothing that fits.
	Next *assignment.State
	// TooLarge says that the owner's annotations have no room for all that was to be written, and what would have it.
	TooLarge *assignment.TooLargeError
	// Freed and Given list the differences, in slot order.
	Freed, Given []Change
	// Waiting is the number of waiters among me and my siblings that got no slot.
	Waiting int
	// Stranded says that my receipt locks a slot that I do not get, because another live pod's receipt names it too, it is
	// in quarantine, or it is another pod's. I get no other slot before my work has stopped and the receipt is withdrawn.
	Stranded bool
	// Live is the number of live pods of the owner.
	Live int
	// Scarce says that there were fewer free slots than live pods of the owner without one, so that siblings that have not shown
	// life got none.
	Scarce bool
	// Barred is the number of free slots that stay free because those who wait gave up before.
	Barred int
	// Quarantined is the number of slots below the count that are free but in quarantine.
	Quarantined int
	// FenceAfter is the largest fence-after that the planner knows of.
	FenceAfter time.Duration
	// HandOver says how asking for slots went.
	HandOver HandOver
}

// HandOver says how asking for slots went (rule 6).
type HandOver struct {
	// Asked are the new requests, in slot order.
	Asked []Change
	// UnderWay and Limit are the hand-overs under way, the new ones included, and how many may be.
	UnderWay, Limit int
	// Older is the number of older revisions' pods that hold a slot, Able that of those which hand it over.
	Older, Able int
}

// AskedFor reports whether there is a new request for the pod.
func (h HandOver) AskedFor(pod string) bool {
	return slices.ContainsFunc(h.Asked, func(c Change) bool { return c.Pod == pod })
}

// Full reports whether only the limit kept a pod from asking for one more slot.
func (h HandOver) Full() bool { return h.Able > len(h.Asked) && h.UnderWay >= h.Limit }
