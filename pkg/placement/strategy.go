package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Input is everything that a target depends on.
type Input struct {
	// Partitions is the number of partitions, P. The memory of a strategy grows with it, so the caller bounds it.
	Partitions int
	// Count is the number of ids, N. Only Primary uses it.
	Count int
	// Members are the ids among which the partitions are divided, in any order. The caller omits ids at or above Count, because they will go.
	Members []int
	// Owners are the present owners. It may list ids that are not members, and may omit members. Partitions at or above Partitions do not count. If one
	// partition has two owners, which should never happen, the member with the lower id counts.
	Owners Owners
	// Target is the value of the user's key, for External.
	Target Owners
}

// Strategy returns the target: which member should own what. It lists all members and no other id. It must be pure, and stable on the way (see the package
// documentation). Without members the target is empty.
type Strategy func(Input) Owners

// The names of the strategies. What a name means never changes. A better strategy gets a new name.
const (
	NameRange    = "range"
	NameEven     = "even"
	NameSticky   = "sticky"
	NamePrimary  = "primary"
	NameExternal = "external"
)

// DefaultName is the name of the strategy of a workload that names none.
const DefaultName = NameSticky

// ErrUnknownStrategy means that no strategy has this name here. A later version may know it.
var ErrUnknownStrategy = errors.New("unknown partition strategy")

// builtIn returns the strategies with their names, in the order in which messages and pages list them.
func builtIn() []named {
	return []named{{NameSticky, Sticky}, {NameEven, Even}, {NameRange, ByRange}, {NamePrimary, Primary}, {NameExternal, External}}
}

type named struct {
	name     string
	strategy Strategy
}

// Named returns the strategy with this name, or an error that wraps ErrUnknownStrategy.
func Named(name string) (Strategy, error) {
	for _, s := range builtIn() {
		if s.name == name {
			return s.strategy, nil
		}
	}
	return nil, fmt.Errorf("%w %s: use one of %s", ErrUnknownStrategy, quote(name), strings.Join(Names(), ", "))
}

// Names returns the names that Named knows.
func Names() []string {
	all := builtIn()
	names := make([]string, 0, len(all))
	for _, s := range all {
		names = append(names, s.name)
	}
	return names
}

// members returns the members in ascending order, each once.
func (in Input) members() []int {
	ids := slices.Clone(in.Members)
	slices.Sort(ids)
	return slices.Compact(ids)
}
