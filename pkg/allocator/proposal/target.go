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

// Target returns what each member should own of the partitions in force. The row says who the members are, and what they have. Each process works it out
// for itself, with the same result. An id that is no member should own nothing. ok is false if that cannot be told, because there is no row or
// no strategy is known. said is how many partitions there are by the receipts, 0 if that is not known.
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

// InForce returns what is in force, without owners, and its strategy (rule 9). The user's keys say how many partitions there are. If they
// were removed, the receipts do, and then the row, because any program may have written it. The strategy is nil if nothing says it, or if no strategy
// is known that could be in force; then force names the one that is not. What the user wants and what makes no sense changes nothing.
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

// said returns how many partitions there are by the receipts, or by those that lock some. It is 0 if none says so.
func (p *planner) said(all bool) int {
	count := 0
	for _, pod := range p.alive {
		if share := pod.Receipt.Share; all || !share.Partitions.Empty() {
			count = max(count, share.Of)
		}
	}
	return count
}
