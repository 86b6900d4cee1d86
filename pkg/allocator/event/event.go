// Package event defines what happens to one pod's claim, each thing as a type. The log, the Kubernetes Events and each further Observer receive the same
// events through one interface, so that none of them is in the protocol's way.
//
// It is for programs that use package allocator. It may change with any version.
//
// An event describes what has happened, never what to do. A request that failed and is repeated is no event: it is logged where it fails.
package event

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/identity"
)

// String returns f as a sentence without its final period.
func (f Failover) String() string {
	ids := make([]string, 0, len(f.To))
	for _, id := range f.To {
		ids = append(ids, strconv.Itoa(id))
	}
	to := strings.Join(ids, ", ")
	switch len(ids) {
	case 0:
		to = "no id so far"
	case 1:
		to = "id " + to
	default:
		to = "ids " + to
	}
	held := "holds"
	if f.After >= time.Second {
		held = "has held for " + f.After.Round(time.Second).String()
	}
	return fmt.Sprintf("partitions %s of id %d, which no pod %s, went to %s", f.Partitions, f.ID, held, to)
}

// Event is one of the types of this package.
type Event any

// Observer receives events.
type Observer interface {
	// Observe is called after each event. The loop waits for it, so it must not block for long. It may be called from several goroutines at once.
	Observe(Event)
}

// Observers are called one after the other.
type Observers []Observer

// Tell passes the event to all of them.
func (o Observers) Tell(e Event) {
	for _, observer := range o {
		observer.Observe(e)
	}
}

type (
	// Published means that another identity was published.
	Published struct{ From, To identity.Identity }

	// Claiming means that this pod has no slot and begins to claim one.
	Claiming struct{}
	// Claimed means that a claim has ended.
	Claimed struct {
		Result ClaimResult
		Took   time.Duration
	}
	// Waiting means that this pod waits for a slot, or for another reason than before.
	Waiting struct {
		// Reason is what it waits for, as the end of the sentence "idalloc waits for".
		Reason string
		Count  int
		// Live and Waiting are the numbers of the owner's live and waiting pods. Live is 0 if they are unknown.
		Live, Waiting int
	}
	// StillWaiting is sent after each half minute without a slot.
	StillWaiting struct{ Reason string }

	// Planned means that the pods were listed and a plan was made, or that the lists failed.
	Planned struct {
		Took time.Duration
		Err  error
		// About is the owner. Foreign are the slots locked by pods that are not the owner's.
		About   metav1.OwnerReference
		Foreign []proposal.Change
	}
	// Conflict means that a write was refused because another write changed the object first.
	Conflict struct{}
	// Written means that this pod wrote the owner.
	Written struct {
		// Filled, Freed and Asked are the changes, in slot order.
		Filled, Freed, Asked []proposal.Change
	}
	// NoRoom means that the owner's annotations have no room for the write, so that pods wait.
	NoRoom struct {
		About  metav1.OwnerReference
		Detail string
	}

	// Taken means that the slot is this pod's, which acts under its id from now on.
	Taken struct {
		ID    int
		Token int64
		// Partitions are those on which it works from now on, empty if there are none.
		Partitions string
	}
	// NotTaken means that the map named this pod, but it could not take the slot.
	NotTaken struct{ Reason string }

	// Grown means that this pod took partitions in addition to those that it had.
	Grown struct {
		ID         int
		Token      int64
		Partitions string
	}
	// Yielded means that work on partitions has stopped, so that other ids can have them.
	Yielded struct {
		ID         int
		Partitions string
	}

	// Revoked means that this pod must stop its work on partitions and then yield them.
	Revoked struct {
		ID         int
		Partitions string
		// Stop is the number of the stop.
		Stop int
	}
	// Paused means that this pod yields all partitions and takes none for now, or that it works on partitions again.
	Paused struct {
		ID     int
		Paused bool
		// Failed is how often in a row the program failed. For is how long the pause lasts because of that, 0 if the pause was requested.
		Failed int
		For    time.Duration
	}
	// PartitionsMoved means that this pod's write changed who owns which partitions.
	PartitionsMoved struct {
		// Given and Taken are the numbers of partitions that ids got and lost.
		Given, Taken int
	}
	// PartitionsInForce means that this pod's write put the user's wishes for partitions in force.
	PartitionsInForce struct {
		About    metav1.OwnerReference
		Old, New Division
	}
	// FailedOver means that this pod's write gave the partitions of ids without a holder to others.
	FailedOver struct {
		About metav1.OwnerReference
		From  []Failover
	}
	// PartitionsHeldUp means that partitions do not change as the user or another pod wants. It is sent again when Detail changes.
	PartitionsHeldUp struct {
		About          metav1.OwnerReference
		Reason, Detail string
		// Unannounced: another pod writes the Kubernetes Event about it, or there is none.
		Unannounced bool
	}

	// Asked means that a pod of a newer revision asked for the slot, and should have it.
	Asked struct {
		ID        int
		Requester string
	}
	// NotHandedOver means that a hand-over does not happen, or not now. ID is unknown if no pod is asked.
	NotHandedOver struct {
		ID        int
		Requester string
		Why       Obstacle
		Detail    string
	}
	// Given means that the work has stopped, and the slot goes to its requester, or is at or above the count.
	Given struct {
		About     metav1.OwnerReference
		ID, Count int
		Requester string
	}
	// GivenBack means that an earlier process of this pod died soon after it took the slot, which goes back to the pods that made room for it.
	GivenBack struct{ ID, Failed int }
	// Lost means that the id is gone, whether or not the work has stopped.
	Lost struct {
		ID     int
		Token  int64
		Reason string
	}
	// Fenced means that the id was withdrawn because contact was lost (strict mode).
	Fenced struct {
		ID         int
		Token      int64
		FenceAfter time.Duration
		Reason     string
	}

	// Unrenewed means that the API server refuses the renewals of the Lease (strict mode). The id is fenced unless it accepts one in time.
	Unrenewed struct{ Reason string }

	// Damaged means that another program changed idalloc's data, and this pod repaired it.
	Damaged struct {
		About          metav1.OwnerReference
		Reason, Detail string
		// Expected: it is no damage, because an operator's action explains it.
		Expected bool
	}
	// Undone means that others undo what this pod writes on the owner. The next write waits for up to Longest.
	Undone struct{ Longest time.Duration }

	// Contact means that the API server confirmed what this process holds (strict mode). The confirmed request was sent Age ago.
	Contact struct {
		Age time.Duration
		// Overdue is the age by which another confirmation should long have come.
		Overdue time.Duration
	}
	// Away means that there is no contact with the API server.
	Away struct {
		Since  time.Time
		Reason error
		// Logged: the log has named the failed request.
		Logged bool
	}
	// Back means that there is contact again.
	Back struct{}
)

// Obstacle is the reason why a hand-over does not happen.
type Obstacle string

// The obstacles.
const (
	// ObstacleDropped: the requester should not have the slot, so its request is dropped.
	ObstacleDropped Obstacle = "dropped"
	// ObstacleContinues: the work did not stop, and continues. The program is asked to stop again later.
	ObstacleContinues Obstacle = "continues"
	// ObstacleCalledOff: the request was withdrawn before the work had stopped.
	ObstacleCalledOff Obstacle = "called off"
	// ObstacleNotAsked: the waiting pod may not ask any other pod.
	ObstacleNotAsked Obstacle = "not asked"
)

// ClaimResult is how a claim ended.
type ClaimResult string

// The results.
const (
	// ClaimTaken: this pod has a slot.
	ClaimTaken ClaimResult = "taken"
	// ClaimStopped: this process was told to stop, or timed out.
	ClaimStopped ClaimResult = "stopped"
	// ClaimFailed: there can be no slot, for example because a permission is missing.
	ClaimFailed ClaimResult = "failed"
)

// Division is what is in force about partitions. With the zero value nothing is.
type Division struct {
	Count    int
	Strategy string
}

// String returns d as a part of a sentence, such as "64 partitions by strategy sticky".
func (d Division) String() string {
	if d == (Division{}) {
		return "no partitions"
	}
	return fmt.Sprintf("%d partitions by strategy %s", d.Count, d.Strategy)
}

// Failover is what one id lost because no pod held it for long.
type Failover struct {
	ID         int
	Partitions string
	// To are the ids that got some of them, in order. The remaining partitions have no owner.
	To []int
	// After is how long the planner had known that the id has no holder, 0 if it has just found out.
	After time.Duration
}
