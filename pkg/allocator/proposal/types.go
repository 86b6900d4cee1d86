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

// Pod is a live pod. It exists and is neither Succeeded nor Failed.
type Pod struct {
	Name, UID string
	// Created is the pod's creationTimestamp.
	Created time.Time
	// Controller is the UID of the pod's direct controller. Pods that share it are siblings.
	Controller string
	// Owned says that the owner's selector matches the pod. It does not match a pod that was relabelled.
	Owned bool
	// Foreign says that the pod is another owner's, although the selector matches it. A plan tells of it, and does nothing else about it.
	Foreign bool
	// Terminating says that the pod is being deleted, and Deadline when its grace period ends. It is alive until it is gone.
	Terminating bool
	Deadline    time.Time
	// Ordinal is the pod's index (StatefulSet, Indexed Job), counted from 0, or NoOrdinal.
	Ordinal int
	// Condemned says that Kubernetes is to remove the pod, because its StatefulSet does not have its ordinal any more.
	Condemned bool
	// Gated says that idalloc's scheduling gate keeps the pod from starting, and that the controller takes for it. It can run as soon as it has a slot.
	Gated bool
	// Central says that the controller plans for the pod, whose process takes for itself. StoodBack says that its program failed, and that it is not too
	// early any more to stop another pod's work for it again.
	Central, StoodBack bool
	// Former is what the pod locks of another owner. A plan does not look at it.
	Former receipt.Receipt
	// Receipt is what the pod says about itself.
	Receipt receipt.Receipt
}

// Moved is the pod when it has come from another owner to this one. It may still work under what it locks there. So that counts as locked here,
// and no other pod gets it meanwhile. No Lease of this owner protects it.
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

// rank is the rank in the pod's receipt. More failures make no difference to who gets a slot.
func (p *Pod) rank() int { return min(p.Receipt.Rank, failed) }

// showsLife reports whether the pod's program is known to have run, because it wrote a receipt. The pod's status would say it, too, but a list of
// whole pods costs each planner, and the watch of each waiter, several times the bytes.
func (p *Pod) showsLife() bool { return p.Receipt.State != receipt.None }

// MakesRoom reports whether the pod has given its slot up without a failure.
func (p *Pod) MakesRoom() bool { return p.rank() == gaveUp }

// runs reports whether the pod's program is known to run, or waits for nothing but a slot. A program that failed may not run between two tries.
func (p *Pod) runs() bool { return (p.showsLife() || p.Gated) && p.rank() < failed }

// overdue reports whether the pod has outlived its grace period.
func (p *Pod) overdue(now time.Time) bool { return p.Terminating && !p.Deadline.After(now) }

// Input is everything that a plan depends on.
type Input struct {
	// Count is the owner's desired number of slots.
	Count int
	// State is what can be read of the owner's state. It was read before the pods were listed.
	State assignment.State
	// Pods are all live pods of the owner, and all other live pods that have a receipt for it.
	Pods []Pod
	// Me is the name of the planner's pod. It is empty for the controller, and for a sweep, which gives no slot to waiters.
	Me string
	// Central says that the planner is the controller. It plans for the pods of the current revision, and after these for all that are Gated or Central.
	Central bool
	// Revision is the Controller of the pods of the current revision. Only the controller says so: it has no pod of its own.
	Revision string
	// Rollout says where the planner stands in a rolling update. With the zero value it asks no pod for a slot.
	Rollout Rollout
	// FreeFor is how long the planner itself has known a slot to be free that it, or a pod that is Central, had to leave to other pods.
	FreeFor time.Duration
	// StandsBack says that the planner's program failed, and that it is too early to stop another pod's work for it again.
	StandsBack bool
	// Partitions is what a plan of a workload with partitions depends on besides.
	Partitions Division
	// Room says how full the owner's annotations are.
	Room assignment.Room
	// Now is the planner's time. Grace periods are compared with it.
	Now time.Time
}

// Rollout is what a pod of a Deployment knows about a rolling update.
type Rollout struct {
	// Current says that the planner belongs to the owner's current revision. Pods of other controllers belong to older ones then.
	Current bool
	// MaxUnavailable is the maxUnavailable of the Deployment's strategy, as a number of pods.
	MaxUnavailable int
	// Available is the number of available pods among the planner and its siblings. Their ReplicaSet says it, because pods are listed by metadata
	// alone. Available and not Ready: with minReadySeconds a new pod proves itself before the next old one is asked.
	Available int
}

// Division is what the owner and the planner know about how to divide partitions.
type Division struct {
	// Wish is what the user wants.
	Wish assignment.Wish
	// Vacant are the ids that the planner has itself known to be without a holder for failover-after, each with the pod of its entry: one that
	// locks nothing, or none.
	Vacant map[int]string
	// AtOnce says that with primary an id that no pod can take soon is vacant, however short the time.
	AtOnce bool
	// Joins has the ids that the planner knows to have been held for long enough to join beside other members (strategy primary).
	Joins map[int]bool
	// Gathers says that no id joins by this plan: more are about to, and one plan is to serve them all.
	Gathers bool
	// Unchanged keeps the row as it is.
	Unchanged bool
	// Strategies finds the strategy in force.
	Strategies Strategies
}

// Cause says why an entry was freed.
type Cause string

// The causes.
const (
	CauseDead   Cause = "dead"   // the holder is gone
	CauseLost   Cause = "lost"   // the holder is strict, and has outlived its grace period
	CauseGiven  Cause = "given"  // the holder gave up
	CauseUnused Cause = "unused" // the holder never took the slot, and may not any more
	CauseLocked Cause = "locked" // a receipt contradicts the entry
)

// WhyNot says why a plan leaves the planner without a slot.
type WhyNot string

// The reasons.
const (
	WhyNoRoom  WhyNot = "no room"   // the owner's annotations have no room for its entry
	WhyAsked   WhyNot = "asked"     // it gets the slot that another pod is asked for
	WhyFailed  WhyNot = "failed"    // its program failed, and more pods live than there are slots
	WhyGaveUp  WhyNot = "gave up"   // it gave its slot up, and more pods live than there are slots
	WhyLimit   WhyNot = "limit"     // as many hand-overs are under way as may be
	WhyKept    WhyNot = "kept"      // no pod that is to go hands over
	WhyNotFree WhyNot = "none free" // all slots belong to live pods
)

// Change is one slot that differs between the owner's state and the next one.
type Change struct {
	ID  int
	Pod string
	// Cause says why the entry was freed. Other changes have none.
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
	// WhyNot says why the planner has no slot in Next, empty if it has one.
	WhyNot WhyNot
	// Waiting is the number of waiters without a slot, among the planner and its siblings.
	Waiting int
	// Live is the number of live pods of the owner.
	Live int
	// Overdue are the slots below the count of pods that have outlived their grace period and are not strict.
	Overdue []Change
	// Foreign are slots locked by pods that are not the owner's. Terminating ones do not count, because they were deleted.
	Foreign []Change
	// Scarce says that there were fewer free slots than pods that want one.
	Scarce bool
	// Reserved is the number of free slots that waiters leave to other pods.
	Reserved int
	// HandOver is the outcome of asking for slots.
	HandOver HandOver
	// Partitions is what became of the partitions.
	Partitions Moves
	// PartitionsTooLarge is set if the owner's annotations have no room for a change of the row. Then it stays as it is.
	PartitionsTooLarge *assignment.TooLargeError
}

// HandOver is the outcome of asking for slots.
type HandOver struct {
	// Asked are the new requests. Pod is the requester.
	Asked []Change
	// UnderWay is the number of hand-overs under way, with the new ones. Limit is the largest allowed number.
	UnderWay, Limit int
	// Older is the number of slots of pods that may be asked: those of older revisions, and condemned ones. Able is the number of those that
	// hand over.
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

// Moves is what became of the partitions.
type Moves struct {
	// Changed says that the row changes.
	Changed bool
	// Gained and Lost are what ids got and lost, in the order of the ids.
	Gained, Lost []Owned
	// FailedOver are the members that the plan takes out because they are vacant, each with what it owned. One that owned nothing is
	// not among them.
	FailedOver []Owned
	// Unknown is the name of a strategy that the planner does not know. Then nothing moves.
	Unknown string
}
