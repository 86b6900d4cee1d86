package ownership

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// Holder is what the receipt of the live pod that has a slot says.
type Holder struct {
	// Works says that the receipt locks this slot, and that the process works on partitions.
	Works bool
	// Unaware says that the receipt locks this slot, and that the process does not work on partitions.
	Unaware bool
	// Locks are the partitions that the receipt locks, and Yields those that it yields.
	Locks, Yields placement.Set
	// Paused says that the process wants no partitions for now.
	Paused bool
}

// Input is everything that a plan depends on.
type Input struct {
	// Count is the number of slots.
	Count int
	// Before is what is in force and who owns what, as read. It is nil if there is nothing or if it cannot be read.
	Before *assignment.Partitions
	// Trust says how far Before is believed, and Clean that both Before and the slots are wholly trusted.
	Trust assignment.Trust
	Clean bool
	// Renew asks for a write of what is in force, even if nothing changes.
	Renew bool
	// Wish is what the user wants.
	Wish assignment.Wish
	// Holders are the live pods that have slots after the slots were planned, by id.
	Holders map[int]Holder
	// Strays is what the receipts of live pods lock that have no slot, or another one than their receipts say.
	Strays []placement.Set
	// Vacant are the ids that the planner has itself known to be without a holder for failover-after.
	Vacant map[int]bool
	// Quarantined reports whether a slot is in quarantine. It may be nil.
	Quarantined func(id int) bool
	// Unserved says that there is a quarantine that the planner has not served.
	Unserved bool
	// Me is the planner's id, or -1. Joins says that the planner has held it for long enough to join beside other members.
	Me    int
	Joins bool
	// Strategies finds a strategy by its name.
	Strategies func(name string) (placement.Strategy, error)
}

// Change is a set of partitions that an id got or lost.
type Change struct {
	ID  int
	Set placement.Set
}

// Decision is the result of Plan.
type Decision struct {
	// Next is what is to be in force, and who is to own what. It is nil if there are to be no partitions. Its Epoch is
	// that of Before; the writer sets another one if Changed is set.
	Next *assignment.Partitions
	// Changed says that Next has to be written.
	Changed bool
	// Gained and Lost are what ids got and lost, in the order of the ids.
	Gained, Lost []Change
	// FailedOver are the members that the plan takes out because nobody has held them for failover-after, in the order of the
	// ids, each with what it owned. A member that owned nothing is not among them.
	FailedOver []Change
	// Withheld says that partitions of nobody are given out only when no live pod that does not work on partitions has
	// a slot any more.
	Withheld bool
	// Unknown is the name of a strategy that the planner does not know, so that it moves nothing.
	Unknown string
}

// Plan returns the next state. It never fails and never blocks. Its cost is that of the strategy.
func Plan(in Input) Decision {
	force, known := inForce(in)
	if !known {
		d := Decision{Next: in.Before}
		if force != nil {
			d.Unknown = force.Strategy
		}
		return d
	}
	p := newPlanner(in, force)
	p.release()
	p.admit()
	p.give()
	return p.decision()
}

// inForce returns what is to be in force, without owners. It is nil if nothing says how many partitions there are. known says
// that the planner knows the strategy. What the user wants and what makes no sense changes nothing.
func inForce(in Input) (force *assignment.Partitions, known bool) {
	force = &assignment.Partitions{Strategy: placement.DefaultName}
	switch {
	case in.Wish.HasCount:
		force.Count = in.Wish.Count
	case in.Before != nil:
		force.Count, force.Strategy = in.Before.Count, in.Before.Strategy // somebody removed the keys
	default:
		return nil, false
	}
	if in.Wish.Strategy != "" {
		force.Strategy = in.Wish.Strategy
		if _, err := in.Strategies(force.Strategy); err == nil {
			return force, true
		}
		if in.Before != nil {
			force.Strategy = in.Before.Strategy
		}
	}
	if in.Before != nil && nonsense(in.Wish, assignment.PartitionStrategyKey) {
		force.Strategy = in.Before.Strategy
	}
	_, err := in.Strategies(force.Strategy)
	return force, err == nil
}

// nonsense reports whether the user's value under the key makes no sense.
func nonsense(wish assignment.Wish, key string) bool {
	return slices.ContainsFunc(wish.Problems, func(p assignment.ProblemError) bool { return p.Key == key })
}
