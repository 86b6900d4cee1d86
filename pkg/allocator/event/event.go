// Package event has what happens to one pod's claim, each thing as a type. The log, the Kubernetes Events and each further
// Observer hear of the same things through one interface, so that none of them is in the protocol's way.
//
// It is for programs that use package allocator. It may change with any version.
//
// An event says what has happened, never what to do. A request that failed and is repeated is no event: it is logged where it fails.
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

// String returns it as a sentence without its end.
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

// Observer hears of events.
type Observer interface {
	// Observe is told of each event after it has happened. The loop waits for it, so it must not block for long. It may be called
	// from several goroutines at once.
	Observe(Event)
}

// Observers are told one after the other.
type Observers []Observer

// Tell tells all of them.
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
		// Reason says what it waits for, as the end of the sentence "idalloc waits for".
		Reason string
		Count  int
		// Live and Waiting are how many of the owner's pods live and wait. Live is 0 if that is not known.
		Live, Waiting int
	}
	// StillWaiting means that half a minute has passed without a slot, and again after each further one.
	StillWaiting struct{ Reason string }

	// Planned means that the pods were listed and a plan was made, or that the lists failed.
	Planned struct {
		Took time.Duration
		Err  error
		// About is the owner. Foreign are the slots that pods lock which are not the owner's.
		About   metav1.OwnerReference
		Foreign []proposal.Change
	}
	// Conflict means that a write was refused because another write changed the object first.
	Conflict struct{}
	// Written means that this pod wrote the owner.
	Written struct {
		// Filled, Freed and Asked are what is new, in slot order.
		Filled, Freed, Asked []proposal.Change
	}
	// NoRoom means that the owner's annotations have no room for what was to be written, so that pods wait.
	NoRoom struct {
		About  metav1.OwnerReference
		Detail string
	}

	// Taken means that the slot is this pod's, which acts under its id from now on.
	Taken struct {
		ID    int
		Token int64
		// Partitions are those that it works on from now on, empty if there are none.
		Partitions string
	}
	// NotTaken means that the map named this pod, and the slot was not to be had all the same.
	NotTaken struct{ Reason string }

	// Grown means that this pod took partitions besides those that it had.
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

	// Revoked means that this pod is to stop its work on partitions, and then yields them.
	Revoked struct {
		ID         int
		Partitions string
		// Stop is the number of the stop.
		Stop int
	}
	// Paused means that this pod yields all partitions and takes none for now, or that it takes part again.
	Paused struct {
		ID     int
		Paused bool
		// Failed is how often in a row the program failed. For is how long the pause lasts because of that, 0 if it was asked for.
		Failed int
		For    time.Duration
	}
	// PartitionsMoved means that this pod's write changed who owns which partitions.
	PartitionsMoved struct {
		// Given and Taken are how many partitions some id got, and how many some id lost.
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
	// PartitionsHeldUp means that something about partitions does not go as the user or another pod wants. It is told again when Detail changes.
	PartitionsHeldUp struct {
		About          metav1.OwnerReference
		Reason, Detail string
		// Unannounced says that another pod leaves the Kubernetes Event of it, or that there is none.
		Unannounced bool
	}

	// Asked means that a pod of a newer revision asked for the slot, and is to have it.
	Asked struct {
		ID        int
		Requester string
	}
	// NotHandedOver means that a hand-over does not happen, or not now. ID is not known if no pod is asked.
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
	// GivenBack means that an earlier process of this pod died soon after it took the slot, which goes back to those that made room for it.
	GivenBack struct{ ID, Failed int }
	// Lost means that the id is gone, whether or not the work has stopped.
	Lost struct {
		ID     int
		Token  int64
		Reason string
	}
	// Fenced means that the id was withdrawn for lack of contact (strict mode).
	Fenced struct {
		ID         int
		Token      int64
		FenceAfter time.Duration
		Reason     string
	}

	// Unrenewed means that the API server refuses the renewals of the Lease (strict mode). The id is fenced unless it accepts one in time.
	Unrenewed struct{ Reason string }

	// Damaged means that another program changed what is idalloc's, and this pod repaired it.
	Damaged struct {
		About          metav1.OwnerReference
		Reason, Detail string
		// Expected says that it is no damage: it follows from what an operator may do.
		Expected bool
	}
	// Undone means that others undo what this pod writes on the owner. The next write waits for up to Longest.
	Undone struct{ Longest time.Duration }

	// Contact means that the API server confirmed what this process holds (strict mode). The request for that was sent Age ago.
	Contact struct {
		Age time.Duration
		// Overdue is the age at which there should long have been another one.
		Overdue time.Duration
	}
	// Away means that there is no contact with the API server.
	Away struct {
		Since  time.Time
		Reason error
		// Logged says that the log has named the request that failed.
		Logged bool
	}
	// Back means that there is contact again.
	Back struct{}
)

// Obstacle says why a hand-over does not happen.
type Obstacle string

// The obstacles.
const (
	// ObstacleDropped: the pod that asks should not have the slot, so its request is dropped.
	ObstacleDropped Obstacle = "dropped"
	// ObstacleContinues: the work did not stop, and continues. Its program is asked again later.
	ObstacleContinues Obstacle = "continues"
	// ObstacleCalledOff: the request went before the work had stopped.
	ObstacleCalledOff Obstacle = "called off"
	// ObstacleNotAsked: the pod that waits may ask no other pod.
	ObstacleNotAsked Obstacle = "not asked"
)

// ClaimResult says how a claim ended.
type ClaimResult string

// The results.
const (
	// ClaimTaken: this pod has a slot.
	ClaimTaken ClaimResult = "taken"
	// ClaimStopped: this process was told to stop, or its time was over.
	ClaimStopped ClaimResult = "stopped"
	// ClaimFailed: there can be no slot, such as without a permission.
	ClaimFailed ClaimResult = "failed"
)

// Division is what is in force about partitions. The zero value says that nothing is.
type Division struct {
	Count    int
	Strategy string
}

// String returns it as a part of a sentence, such as "64 partitions by strategy sticky".
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
	// To are the ids that got some of them, in order. What none of them got has no owner.
	To []int
	// After is for how long the planner had known that the id has no holder, 0 if it has just found that out.
	After time.Duration
}
