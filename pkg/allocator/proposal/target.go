package proposal

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Strategies finds a strategy by its name. Nil stands for placement.Named.
type Strategies func(name string) (placement.Strategy, error)

func (s Strategies) find(name string) (placement.Strategy, error) {
	if s == nil {
		return placement.Named(name)
	}
	return s(name)
}

// Target returns what each member should own of the partitions in force. The row names the members and what they have. Each process computes the same
// result by itself. An id that is not a member should own nothing. ok is false if the target is unknown, because there is no row or no known strategy. said
// is the number of partitions according to the receipts, 0 if unknown.
func Target(count int, row *assignment.Row, wish assignment.Wish, said int, strategies Strategies) (target placement.Owners, ok bool) {
	force, strategy := InForce(wish, row, said, strategies)
	if row == nil || strategy == nil {
		return nil, false
	}
	members := slices.DeleteFunc(row.Owners.IDs(), func(id int) bool { return id >= count })
	return strategy(placement.Input{
		Partitions: force.Count, Count: count, Members: members, Owners: row.Owners, Target: wish.Target,
	}), true
}

// InForce returns what is in force, without owners, and its strategy (rule 9). The user's keys set the number of partitions. If they were removed, the
// receipts do, and then the row, which any program may have written. The strategy is nil if none is named, or if no known strategy can be in force; then
// force names the unknown one. Invalid wishes of the user change nothing.
func InForce(wish assignment.Wish, row *assignment.Row, said int, strategies Strategies) (force assignment.Row, strategy placement.Strategy) {
	force.Strategy = placement.DefaultName
	if row != nil && !wish.HasCount {
		force.Strategy = row.Strategy
	}
	switch {
	case wish.HasCount:
		force.Count = wish.Count
	case said > 0:
		force.Count = said
	case row != nil:
		force.Count = row.Count
	default:
		return assignment.Row{}, nil
	}
	nonsense := func(e assignment.ProblemError) bool { return e.Key == assignment.PartitionStrategyKey }
	switch {
	case wish.Strategy != "":
		force.Strategy = wish.Strategy
	case row != nil && slices.ContainsFunc(wish.Problems, nonsense):
		force.Strategy = row.Strategy
	}
	strategy, err := strategies.find(force.Strategy)
	if err != nil && row != nil {
		force.Strategy = row.Strategy
		strategy, err = strategies.find(force.Strategy)
	}
	if err != nil {
		return force, nil
	}
	return force, strategy
}

// said returns the number of partitions according to all receipts, or only to those that lock some. It is 0 if no receipt has it.
func (p *planner) said(all bool) int {
	count := 0
	for _, pod := range p.alive {
		if share := pod.Receipt.Share; all || !share.Partitions.Empty() {
			count = max(count, share.Of)
		}
	}
	return count
}
