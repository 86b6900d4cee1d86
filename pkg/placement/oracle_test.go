package placement

import (
	"flag"
	"fmt"
	"slices"
	"testing"
)

// every calls check with every division of p partitions among n ids and no owner, for all sets of members among these ids but the empty
// one. An owner that is no member is among them. check must not keep the input.
func every(p, n int, check func(in Input, owner []int)) {
	for set := 1; set < 1<<n; set++ {
		in := Input{Partitions: p, Count: n}
		for id := range n {
			if set>>id&1 == 1 {
				in.Members = append(in.Members, id)
			}
		}
		owner := slices.Repeat([]int{none}, p)
		for more := true; more; more = next(owner, n) {
			in.Owners = ownersOf(owner)
			check(in, owner)
		}
	}
}

// next counts owner up, as digits from none to n-1. It returns false after the last one.
func next(owner []int, n int) bool {
	for i := range owner {
		if owner[i]++; owner[i] < n {
			return true
		}
		owner[i] = none
	}
	return false
}

// ownersOf returns the owners of which owner lists one for each partition.
func ownersOf(owner []int) Owners {
	spans := map[int][]span{}
	for p, id := range owner {
		if id != none {
			spans[id] = append(spans[id], spanOf(p, p))
		}
	}
	o := make(Owners, len(spans))
	for id, s := range spans {
		o[id] = newSet(merged(s))
	}
	return o
}

// listOf is the opposite of ownersOf.
func listOf(o Owners, p int) []int {
	owner := slices.Repeat([]int{none}, p)
	for id, s := range o {
		for q := range s.All() {
			owner[q] = id
		}
	}
	return owner
}

var full = flag.Bool("full", false, "try all divisions of up to 7 partitions; this needs -timeout 1h") //nolint:gochecknoglobals // a flag of the test

// sizes returns numbers of partitions and of ids to try, up to most partitions with four ids, and up to two more with fewer ids. With -short, as
// "make mutation" runs the tests hundreds of times, it is one partition less.
func sizes(most int) [][2]int {
	const partitions, ids = 7, 4
	switch {
	case *full:
		most = partitions
	case testing.Short():
		most--
	}
	var all [][2]int
	for p := range most + 1 {
		all = append(all, [2]int{p, ids})
	}
	for n := 1; n < ids; n++ {
		all = append(all, [2]int{min(most+2, partitions), n})
	}
	return all
}

// The oracle tries all targets. It is asked for the counts alone: which partitions an id has does not change how many must move.
type oracle map[string]int

// fewest returns the fewest moves to a target whose counts differ by at most one.
func (o oracle) fewest(in Input) int {
	counts := make([]int, len(in.Members))
	owner := slices.Repeat([]int{none}, in.Partitions)
	p := 0
	for i, id := range in.Members {
		counts[i] = in.Owners[id].Len()
		for range counts[i] {
			owner[p] = i
			p++
		}
	}
	key := fmt.Sprint(in.Partitions, counts)
	if fewest, ok := o[key]; ok {
		return fewest
	}
	o[key] = in.Partitions + 1
	target := slices.Repeat([]int{none}, in.Partitions)
	for more := true; more; more = next(target, len(in.Members)) {
		has := make([]int, len(in.Members))
		moves := 0
		for p, i := range target {
			if i == none {
				moves = in.Partitions + 1
				break
			}
			has[i]++
			if i != owner[p] {
				moves++
			}
		}
		if moves <= in.Partitions && slices.Max(has)-slices.Min(has) <= 1 {
			o[key] = min(o[key], moves)
		}
	}
	return o[key]
}

func TestStickyIsBalancedAndMovesAsLittleAsTheOracle(t *testing.T) {
	o := oracle{}
	for _, size := range sizes(6) {
		t.Run(fmt.Sprintf("%d partitions, %d ids", size[0], size[1]), func(t *testing.T) {
			every(size[0], size[1], func(in Input, _ []int) {
				target := Sticky(in)
				most, least, all := 0, in.Partitions, 0
				for _, s := range target {
					most, least, all = max(most, s.Len()), min(least, s.Len()), all+s.Len()
				}
				if most-least > 1 || all != in.Partitions || !slices.Equal(target.IDs(), in.Members) {
					t.Fatalf("the target of %s for members %v is %s", in.Owners, in.Members, target)
				}
				fewest := o.fewest(in)
				moves := 0
				for id, s := range target {
					moves += s.Minus(in.Owners[id]).Len()
				}
				if moves != fewest {
					t.Fatalf("from %s to %s are %d moves; %d are enough", in.Owners, target, moves, fewest)
				}
			})
		})
	}
}

// It is enough to try one step, from every map: all maps on the way follow.
func TestTheTargetIsTheSameAtEveryMapOnTheWay(t *testing.T) {
	all := strategies(t)
	all["external with a target"] = func(in Input) Owners {
		in.Target = Owners{1: Of(0, 5), 3: Of(2), 9: Of(1)}
		return External(in)
	}
	for name, strategy := range all {
		for _, size := range sizes(4) {
			t.Run(fmt.Sprintf("%s, %d partitions, %d ids", name, size[0], size[1]), func(t *testing.T) {
				every(size[0], size[1], func(in Input, owner []int) { checkSteps(t, strategy, in, owner) })
			})
		}
	}
}

// checkSteps fails if the target changes while one partition leaves its owner, or arrives.
func checkSteps(t *testing.T, strategy Strategy, in Input, owner []int) {
	t.Helper()
	target := strategy(in)
	before := in.Owners
	for p, to := range listOf(target, in.Partitions) {
		if owner[p] == to {
			continue
		}
		was := owner[p]
		for _, step := range []int{none, to} {
			if step == was {
				continue
			}
			owner[p] = step
			in.Owners = ownersOf(owner)
			if now := strategy(in); !now.Equal(target) {
				t.Fatalf("members %v: the target of %s is %s, but when %d has gone to %d and the map is %s, it is %s",
					in.Members, before, target, p, step, in.Owners, now)
			}
		}
		owner[p] = was
	}
}
