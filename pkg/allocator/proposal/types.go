package proposal

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// NoOrdinal is the Ordinal of a Pod without one.
const NoOrdinal = -1

// Pod is a live pod: it exists and is neither Succeeded nor Failed.
type Pod struct {
	Name, UID string
	// Created is the pod's creationTimestamp.
	Created time.Time
	// Controller is the UID of the pod's direct controller. Pods that share it are siblings.
	Controller string
	// Owned: the owner's selector matches the pod. It does not match a relabelled pod.
	Owned bool
	// Foreign: the pod belongs to another owner, although the selector matches it. A plan only reports it.
	Foreign bool
	// Terminating: the pod is being deleted, and its grace period ends at Deadline. It is alive until it is gone.
	Terminating bool
	Deadline    time.Time
	// Ordinal is the pod's index (StatefulSet, Indexed Job), counted from 0, or NoOrdinal.
	Ordinal int
	// Condemned: Kubernetes will remove the pod, because its StatefulSet no longer has its ordinal.
	Condemned bool
	// Gated: idalloc's scheduling gate keeps the pod from starting, and the controller takes its slot. It can run as soon as it has a slot.
	Gated bool
	// Central: the controller plans for the pod, whose process takes the slot itself. StoodBack: its program failed long enough ago that another pod's work
	// may be stopped for it again.
	Central, StoodBack bool
	// Former is what the pod locks of another owner. A plan does not look at it.
	Former receipt.Receipt
	// Receipt is the pod's receipt.
	Receipt receipt.Receipt
}

// Moved returns a pod that has come from another owner to this one. It may still work under what it locks there. So that counts as locked here, and no
// other pod gets it meanwhile. No Lease of this owner protects it.
func (p Pod) Moved() Pod {
	p.Receipt, p.Receipt.Strict = p.Former, false
	return p
}

// The ranks of a waiter.
const (
	neverGave = iota
	gaveUp
	failed
)

// rank returns the rank in the pod's receipt. More failures do not affect who gets a slot.
func (p *Pod) rank() int { return min(p.Receipt.Rank, failed) }

// showsLife reports whether the pod's program is known to have run, because it wrote a receipt. The pod's status would also show that, but listing whole
// pods costs each planner, and the watch of each waiter, several times the bytes.
func (p *Pod) showsLife() bool { return p.Receipt.State != receipt.None }

// MakesRoom reports whether the pod has given its slot up without a failure.
func (p *Pod) MakesRoom() bool { return p.rank() == gaveUp }

// runs reports whether the pod's program is known to run, or waits only for a slot. A failed program may not be running between two tries.
func (p *Pod) runs() bool { return (p.showsLife() || p.Gated) && p.rank() < failed }

// overdue reports whether the pod has outlived its grace period.
func (p *Pod) overdue(now time.Time) bool { return p.Terminating && !p.Deadline.After(now) }

// Input is everything that a plan depends on.
type Input struct {
	// Count is the owner's desired number of slots.
	Count int
	// State is the readable part of the owner's state. It was read before the pods were listed.
	State assignment.State
	// Pods are all live pods of the owner, and all other live pods that have a receipt for it.
	Pods []Pod
	// Me is the name of the planner's pod. It is empty for the controller, and for a sweep, which gives no slot to waiters.
	Me string
	// Central: the planner is the controller. It plans for the pods of the current revision, and then for all pods that are Gated or Central.
	Central bool
	// Revision is the Controller of the pods of the current revision. Only the controller sets it, because it has no pod of its own.
	Revision string
	// Rollout is the planner's position in a rolling update. With the zero value it asks no pod for a slot.
	Rollout Rollout
	// FreeFor is how long the planner itself has known a free slot that it, or a Central pod, had to leave to other pods.
	FreeFor time.Duration
	// StandsBack: the planner's program failed, and it is too early to stop another pod's work for it again.
	StandsBack bool
	// Partitions is the additional input for a workload with partitions.
	Partitions Division
	// Room is the room in the owner's annotations.
	Room assignment.Room
	// Now is the planner's time, for comparison with the ends of grace periods.
	Now time.Time
}

// Rollout is what a pod of a Deployment knows about a rolling update.
type Rollout struct {
	// Current: the planner belongs to the owner's current revision. Then pods of other controllers belong to older ones.
	Current bool
	// MaxUnavailable is the maxUnavailable of the Deployment's strategy, as a number of pods.
	MaxUnavailable int
	// Available is the number of available pods among the planner and its siblings. It comes from their ReplicaSet, because pods are listed by metadata
	// alone. Available and not Ready: with minReadySeconds a new pod proves itself before the next old one is asked.
	Available int
}

// Division is what the owner and the planner know about the division of partitions.
type Division struct {
	// Wish is what the user requests.
	Wish assignment.Wish
	// Vacant are the ids that the planner itself has known to be without a holder for failover-after, each with the pod of its entry, which locks nothing,
	// or with none.
	Vacant map[int]string
	// AtOnce: with primary, an id that no pod can take soon is vacant at once.
	AtOnce bool
	// Joins has the ids that are known to have been held long enough to join other members (strategy primary).
	Joins map[int]bool
	// Gathers: no id joins by this plan, because more will join soon, and one plan should serve them all.
	Gathers bool
	// Unchanged keeps the row as it is. Ends drops it, because no live pod can work on partitions.
	Unchanged, Ends bool
	// Strategies finds the strategy in force.
	Strategies Strategies
}

// Cause is the reason why an entry was freed.
type Cause string

// The causes.
const (
	CauseDead   Cause = "dead"   // the holder is gone
	CauseLost   Cause = "lost"   // the holder is strict, and has outlived its grace period
	CauseGiven  Cause = "given"  // the holder gave up
	CauseUnused Cause = "unused" // the holder never took the slot, and must not take it any more
	CauseLocked Cause = "locked" // a receipt contradicts the entry
)

// WhyNot is the reason why a plan leaves the planner without a slot.
type WhyNot string

// The reasons.
const (
	WhyNoRoom  WhyNot = "no room"   // the owner's annotations have no room for its entry
	WhyAsked   WhyNot = "asked"     // it gets a slot that another pod is asked for
	WhyFailed  WhyNot = "failed"    // its program failed, and more pods live than there are slots
	WhyGaveUp  WhyNot = "gave up"   // it gave its slot up, and more pods live than there are slots
	WhyLimit   WhyNot = "limit"     // the maximum number of hand-overs is under way
	WhyKept    WhyNot = "kept"      // no pod that may be asked hands over
	WhyNotFree WhyNot = "none free" // all slots belong to live pods
)

// Change is one slot that differs between the owner's state and the next one.
type Change struct {
	ID  int
	Pod string
	// Cause is why the entry was freed. Other changes have none.
	Cause Cause
}

// Decision is the result of Plan.
type Decision struct {
	// Next is the state to commit. It is nil if there is nothing to write, or if TooLarge is set and nothing fits.
	Next *assignment.State
	// TooLarge is set if the owner's annotations have no room for the whole plan. Then Next is the part that fits.
	TooLarge *assignment.TooLargeError
	// Freed and Filled list the differences, in the order of the slots.
	Freed, Filled []Change
	// WhyNot is why the planner has no slot in Next, empty if it has one.
	WhyNot WhyNot
	// Waiting is the number of waiters without a slot, among the planner and its siblings.
	Waiting int
	// Live is the number of live pods of the owner.
	Live int
	// Overdue are the slots below the count whose pods have outlived their grace period and are not strict.
	Overdue []Change
	// Foreign are slots locked by pods of other owners. Terminating pods do not count, because they were deleted.
	Foreign []Change
	// Scarce: there were fewer free slots than pods that want one.
	Scarce bool
	// Reserved is the number of free slots that waiters leave to other pods.
	Reserved int
	// HandOver is the outcome of asking for slots.
	HandOver HandOver
	// Partitions has the changes of partitions.
	Partitions Moves
	// PartitionsTooLarge is set if the owner's annotations have no room for a change of the row. Then the row stays as it is.
	PartitionsTooLarge *assignment.TooLargeError
}

// HandOver is the outcome of asking for slots.
type HandOver struct {
	// Asked are the new requests. Pod is the requester.
	Asked []Change
	// UnderWay is the number of hand-overs under way, including the new ones. Limit is the largest allowed number.
	UnderWay, Limit int
	// Older is the number of slots whose pods may be asked: those of older revisions, and condemned ones. Able is the number of pods among these that hand
	// over.
	Older, Able int
}

// AskedFor reports whether the plan has a new request for the pod.
func (h HandOver) AskedFor(pod string) bool {
	return slices.ContainsFunc(h.Asked, func(c Change) bool { return c.Pod == pod })
}

// Full reports whether only the limit kept the planner from asking for one more slot.
func (h HandOver) Full() bool { return h.Able > len(h.Asked) && h.UnderWay >= h.Limit }

// Owned is an id with some of its partitions.
type Owned struct {
	ID  int
	Set placement.Set
}

// Moves has the changes of partitions.
type Moves struct {
	// Changed: the row changes.
	Changed bool
	// Gained and Lost are what ids got and lost, in the order of the ids.
	Gained, Lost []Owned
	// FailedOver are the members that the plan removes because they are vacant, each with what it owned. Members that owned nothing are not listed.
	FailedOver []Owned
	// Unknown is the name of a strategy that the planner does not know. Then nothing moves.
	Unknown string
}
