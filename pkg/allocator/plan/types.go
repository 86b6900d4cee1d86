package plan

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/ownership"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// NoOrdinal is the Ordinal of a Pod without one.
const NoOrdinal = -1

// Pod is a live pod. It exists and is neither Succeeded nor Failed.
type Pod struct {
	Name string
	UID  string
	// Created is the pod's creationTimestamp.
	Created time.Time
	// Controller is the UID of the pod's direct controller; pods that share it are siblings.
	Controller string
	// Owned says that the owner's selector matches the pod. It does not match a pod that somebody relabelled, but such
	// a pod keeps its slot.
	Owned bool
	// Terminating says that the pod is being deleted. It is alive until it is gone.
	Terminating bool
	// Deadline is the end of a Terminating pod's grace period, by the API server's clock, and Grace is how long that period is.
	Deadline time.Time
	Grace    time.Duration
	// Lost says that the pod is Terminating and strict, and that the planner has itself known of that for longer than the grace period.
	Lost bool
	// Ordinal is the pod's index (StatefulSet, Indexed Job), counted from 0, or NoOrdinal.
	Ordinal int
	// Receipt is the pod's own receipt for this owner, or nil.
	Receipt *assignment.Receipt
}

func (p Pod) locks() bool  { return p.Receipt.Locks() }
func (p Pod) gaveUp() bool { return p.Receipt != nil && p.Receipt.GaveUp }

// showsLife reports whether the pod's program is known to have run, because it wrote a receipt. Other pods may never
// start.
func (p Pod) showsLife() bool { return p.Receipt != nil }

// failed reports whether the pod's program ended by itself soon after it last took a slot.
func (p Pod) failed() bool { return p.Receipt != nil && p.Receipt.Failed > 0 }

// LostAfter is how long after the end of its grace period a strict pod is lost. A kubelet that runs needs less than that to report the end
// of a pod's processes.
const LostAfter = 10 * time.Second

// strict reports whether whatever acts under the slot that the pod's receipt locks stops by itself without contact.
func (p Pod) strict() bool { return p.locks() && p.Receipt.FenceAfter > 0 }

// MayBeLost reports whether the pod is lost if it outlives its grace period. The slot of any other Terminating pod comes free
// only when the pod is gone.
func (p Pod) MayBeLost() bool { return p.Terminating && p.strict() }

// overdue reports whether the pod has outlived its grace period.
func (p Pod) overdue(now time.Time) bool { return p.Terminating && !now.Before(p.Deadline) }

// gives reports whether the pod's work under id has stopped, so that anybody may remove its entry.
func (p Pod) gives(id int) bool { return p.gaveUp() && p.Receipt.Gives && p.Receipt.ID == id }

// Intent is what the planner wants for itself.
type Intent int

const (
	// Claim asks for a slot if the planner has none.
	Claim Intent = iota
	// Move gives the planner's slot and asks for another one like any waiter. Its work has stopped, and its receipt
	// says that it gave up.
	Move
	// Release gives the planner's slot and asks for no other.
	Release
)

// Input is everything that a plan depends on.
type Input struct {
	// Count is the owner's desired number, N.
	Count int
	// State is the owner's state as read, before the pods were listed.
	State assignment.State
	// Trust says how far State is believed.
	Trust assignment.Trust
	// FenceOurs says that idalloc was the last writer of State's fence-after, even if somebody else wrote the rest.
	FenceOurs bool
	// Pods are all live pods that matter: the owner's pods, pods with a receipt, and holders that were not confirmed
	// dead.
	Pods []Pod
	// Me is the name of the planner's pod. It is empty for a sweep, which gives slots to nobody.
	Me string
	// Intent is what the planner wants. A sweep leaves it at Claim.
	Intent Intent
	// Rollout says where the planner stands in a rolling update. With the zero value it asks nobody for a slot.
	Rollout Rollout
	// TakeReserved lets a planner that gave up have a slot that has been free for a long time.
	TakeReserved bool
	// StandsBack says that the planner's program failed, and that it is too early to stop another pod's work for it
	// again.
	StandsBack bool
	// FenceAfter is the planner's own fence-after, 0 without strict mode.
	FenceAfter time.Duration
	// Ended are the slots of dead holders whose processes are known to have ended. In strict mode the slots of other
	// dead holders go into quarantine.
	Ended map[int]bool
	// Served are the epochs of quarantines that are over by the planner's own clock.
	Served map[int64]bool
	// NeedsWrite asks for a write even if only the epoch changes. A pod that gave up before may take a slot only after a
	// write of its own.
	NeedsWrite bool
	// Partitions is what a plan of a workload with partitions depends on besides.
	Partitions Partitions
	// Room says how full the owner's annotations are.
	Room assignment.Room
	// Now is the planner's time. The new epoch follows it, and grace periods are compared with it.
	Now time.Time
}

// Partitions is what the owner and the planner know about partitions. With the zero value nothing changes about them.
type Partitions struct {
	// Trust says how far State.Partitions is believed, if the slots are believed as far.
	Trust assignment.Trust
	// Wish is what the user wants.
	Wish assignment.Wish
	// Vacant are the ids that the planner has itself known to be without a holder for failover-after.
	Vacant map[int]bool
	// Joins says that the planner has held its id for long enough to join beside other members (strategy primary).
	Joins bool
	// Unchanged keeps the partitions as they are.
	Unchanged bool
	// Renew asks for a write of the owners of partitions even if nothing changes, because only some processes trust them.
	Renew bool
	// Strategies finds a strategy by its name. Nil stands for placement.Named.
	Strategies func(name string) (placement.Strategy, error)
}

// Rollout is what a pod of a Deployment knows about a rolling update.
type Rollout struct {
	// Current says that the planner belongs to the owner's current revision. Then pods of other controllers belong to
	// older revisions.
	Current bool
	// MaxUnavailable is the maxUnavailable of the Deployment's strategy, as a number of pods.
	MaxUnavailable int
	// Available is the number of available pods among the planner and its siblings.
	Available int
}

// Cause says why a slot was freed.
type Cause string

// The causes.
const (
	// CauseDead: the holder is gone, Succeeded or Failed.
	CauseDead Cause = "dead"
	// CauseReplaced: another pod lives under the holder's name.
	CauseReplaced Cause = "replaced"
	// CauseLost: the holder is lost.
	CauseLost Cause = "lost"
	// CauseGiven: the holder gave the slot.
	CauseGiven Cause = "given"
	// CauseUnsealed: somebody else changed the map, and no receipt confirms the entry.
	CauseUnsealed Cause = "unsealed"
)

// Change is one slot that differs between the owner's state and the next one.
type Change struct {
	ID  int
	Pod string
	// Cause says why the slot was freed. Other changes have none.
	Cause Cause
}

// Decision is the result of Plan.
type Decision struct {
	// Next is the state to commit. It is nil if there is nothing to do, or if TooLarge is set and nothing fits.
	Next *assignment.State
	// TooLarge is set if the owner's annotations have no room for the whole plan. Then Next is the part that fits.
	TooLarge *assignment.TooLargeError
	// Freed and Filled list the differences, in slot order.
	Freed, Filled []Change
	// Waiting is the number of waiters without a slot, among the planner and its siblings.
	Waiting int
	// Stranded says that the planner's receipt locks a slot that the planner does not get: another live pod's receipt
	// names the slot too, or it is in quarantine, or it has an entry for another pod. The planner gets no other slot
	// until its work has stopped and it has withdrawn the receipt.
	Stranded bool
	// Live is the number of live pods of the owner, without lost ones.
	Live int
	// Overdue are the slots below the count of pods that have outlived their grace period by LostAfter and cannot be lost, because
	// they are not strict.
	Overdue []Change
	// Scarce says that there were fewer free slots than live pods of the owner without one. Then siblings that have not
	// shown life got none.
	Scarce bool
	// Reserved is the number of free slots that stay free because the waiters must leave them to other pods.
	Reserved int
	// Quarantined is the number of slots below the count that have no holder and are in quarantine.
	Quarantined int
	// FenceAfter is the largest fence-after that the planner knows of.
	FenceAfter time.Duration
	// HandOver is the outcome of asking for slots.
	HandOver HandOver
	// Partitions is what became of the partitions.
	Partitions ownership.Decision
	// PartitionsTooLarge is set if the owner's annotations have no room for a change of the partitions. Then they stay as
	// they are.
	PartitionsTooLarge *assignment.TooLargeError
}

// HandOver is the outcome of asking for slots (rule 6).
type HandOver struct {
	// Asked are the new requests. Pod is the requester.
	Asked []Change
	// UnderWay is the number of hand-overs under way, with the new ones. Limit is the largest allowed number.
	UnderWay, Limit int
	// Older is the number of slots that older revisions' pods hold. Able is the number of those that can be asked for.
	Older, Able int
}

// AskedFor reports whether the plan has a new request for the pod.
func (h HandOver) AskedFor(pod string) bool {
	return slices.ContainsFunc(h.Asked, func(c Change) bool { return c.Pod == pod })
}

// Full reports whether only the limit kept the planner from asking for one more slot.
func (h HandOver) Full() bool { return h.Able > len(h.Asked) && h.UnderWay >= h.Limit }
