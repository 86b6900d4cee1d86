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

// Target returns what each member should own, as the row says it. Each process works it out for itself, with the same result. An id that is no
// member should own nothing. ok is false if that cannot be told, because there is no row or its strategy is not known.
func Target(count int, row *assignment.Row, wish assignment.Wish, strategies Strategies) (target placement.Owners, ok bool) {
	if row == nil {
		return nil, false
	}
	strategy, err := strategies.find(row.Strategy)
	if err != nil {
		return nil, false
	}
	members := slices.DeleteFunc(row.Owners.IDs(), func(id int) bool { return id >= count })
	return strategy(placement.Input{
		Partitions: row.Count, Count: count, Members: members, Owners: row.Owners, Target: wish.Target,
	}), true
}

// inForce returns what is to be in force, without owners, and its strategy (rule 9). The strategy is nil if nothing says how many partitions
// there are, or if no strategy is known that could be in force. What the user wants and what makes no sense changes nothing.
func (p *planner) inForce() (force assignment.Row, strategy placement.Strategy) {
	wish, row := p.in.Partitions.Wish, p.in.State.Row
	force.Strategy = placement.DefaultName
	switch {
	case wish.HasCount:
		force.Count = wish.Count
	case row != nil: // somebody removed the user's keys
		force.Count, force.Strategy = row.Count, row.Strategy
	default: // somebody may have removed the row, too
		if force.Count = p.said(); force.Count == 0 {
			return force, nil
		}
	}
	nonsense := func(e assignment.ProblemError) bool { return e.Key == assignment.PartitionStrategyKey }
	switch {
	case wish.Strategy != "":
		force.Strategy = wish.Strategy
	case row != nil && slices.ContainsFunc(wish.Problems, nonsense):
		force.Strategy = row.Strategy
	}
	strategy, err := p.in.Partitions.Strategies.find(force.Strategy)
	if err != nil && row != nil {
		force.Strategy = row.Strategy
		strategy, err = p.in.Partitions.Strategies.find(force.Strategy)
	}
	if err != nil {
		p.d.Partitions.Unknown = force.Strategy
		return force, nil
	}
	return force, strategy
}

// said returns how many partitions there are by the receipts, 0 if none says so.
func (p *planner) said() int {
	count := 0
	for _, pod := range p.alive {
		count = max(count, pod.Receipt.Share.Of)
	}
	return count
}
