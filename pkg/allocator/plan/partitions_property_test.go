package plan

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

const someParts = 6

// genDivided draws an owner with partitions, and pods that lock at most one partition each.
func genDivided() *rapid.Generator[Input] {
	return rapid.Custom(func(t *rapid.T) Input {
		in := genInput().Draw(t, "in")
		in.Partitions.Trust = rapid.SampledFrom([]assignment.Trust{assignment.Clean, assignment.Clean, assignment.Foreign, assignment.Untracked}).Draw(t, "trust")
		row := &assignment.Partitions{Count: someParts, Strategy: rapid.SampledFrom(placement.Names()).Draw(t, "strategy"), Owners: placement.Owners{}}
		for k := range someParts {
			if id := rapid.IntRange(-1, 9).Draw(t, "owner"); id >= 0 {
				row.Owners[id] = row.Owners[id].Union(placement.Of(k))
			}
		}
		in.State.Partitions = row
		in.Partitions.Wish = assignment.Wish{HasCount: true, Count: someParts, Strategy: row.Strategy}
		in.Partitions.Joins = rapid.Bool().Draw(t, "joins")
		for i := range in.Pods {
			r := in.Pods[i].Receipt
			if !r.Locks() || rapid.IntRange(0, 9).Draw(t, "unaware") == 9 {
				continue
			}
			set := placement.Of(rapid.IntRange(-1, someParts-1).Draw(t, "locks")) // -1 is none
			r.Partitions = &set
			if rapid.Bool().Draw(t, "yields") {
				r.Yields = row.Owners[r.ID].Minus(set)
			}
		}
		return in
	})
}

func forAllDivided(t *testing.T, check func(*rapid.T, Input, Decision)) {
	t.Helper()
	for range 4 {
		rapid.Check(t, func(t *rapid.T) {
			in := genDivided().Draw(t, "in")
			check(t, in, Plan(in))
		})
	}
}

// idAfter returns the id that the pod has after the plan, if its receipt is for that id.
func idAfter(in Input, d Decision, p Pod) (int, bool) {
	id, has := after(in, d).Slots.Of(p.Name)
	return id, has && p.locks() && p.Receipt.ID == id
}

func locked(p Pod) placement.Set {
	if !p.locks() || p.Receipt.Partitions == nil {
		return placement.Set{}
	}
	return *p.Receipt.Partitions
}

func TestWhatAPodLocksIsGivenToNoOtherIDThanItsOwn(t *testing.T) {
	forAllDivided(t, func(t *rapid.T, in Input, d Decision) {
		for id, s := range after(in, d).Partitions.Owners {
			got := s.Minus(in.State.Partitions.Owners[id])
			for _, p := range in.Pods {
				if own, ok := idAfter(in, d, p); (!ok || own != id) && !got.Intersect(locked(p)).Empty() {
					t.Fatalf("id %d gets %s, and %s locks %s", id, got, p.Name, locked(p))
				}
			}
		}
	})
}

func TestARestoredRowGivesAPodWhatItAloneLocks(t *testing.T) {
	forAllDivided(t, func(t *rapid.T, in Input, d Decision) {
		if in.Trust == assignment.Clean && in.Partitions.Trust == assignment.Clean {
			return
		}
		for i, p := range in.Pods {
			id, ok := idAfter(in, d, p)
			others := slices.Delete(slices.Clone(in.Pods), i, i+1)
			contested := slices.ContainsFunc(others, func(o Pod) bool { return !locked(o).Intersect(locked(p)).Empty() })
			if ok && !contested && !locked(p).Subset(after(in, d).Partitions.Owners[id]) {
				t.Fatalf("%s locks %s for id %d, which owns %s", p.Name, locked(p), id, after(in, d).Partitions.Owners[id])
			}
		}
	})
}

func TestAPodWithAnEntryKeepsWhatItDoesNotYield(t *testing.T) {
	forAllDivided(t, func(t *rapid.T, in Input, d Decision) {
		if in.Trust != assignment.Clean || in.Partitions.Trust != assignment.Clean {
			return
		}
		for _, p := range in.Pods {
			id, has := after(in, d).Slots.Of(p.Name)
			if was, had := in.State.Slots.Of(p.Name); !has || !had || was != id {
				continue
			}
			owned := in.State.Partitions.Owners[id]
			if p.locks() && p.Receipt.ID == id {
				if p.Receipt.Partitions == nil {
					continue // it works on none
				}
				owned = owned.Minus(p.Receipt.Yields)
			}
			if lost := owned.Minus(after(in, d).Partitions.Owners[id]); !lost.Empty() {
				t.Fatalf("%s has id %d, which loses %s", p.Name, id, lost)
			}
		}
	})
}

func TestAfterAWipeWithStrictModeOnlyLockedPartitionsHaveAnOwner(t *testing.T) {
	forAllDivided(t, func(t *rapid.T, in Input, d Decision) {
		if in.Trust != assignment.Foreign || d.FenceAfter == 0 {
			return
		}
		for id, s := range after(in, d).Partitions.Owners {
			for k := range s.All() {
				if !slices.ContainsFunc(in.Pods, func(p Pod) bool { return locked(p).Contains(k) }) {
					t.Fatalf("id %d gets %d, and a pod that nobody knows of may work on it", id, k)
				}
			}
		}
	})
}

func TestASlotInQuarantineKeepsItsPartitions(t *testing.T) {
	forAllDivided(t, func(t *rapid.T, in Input, d Decision) {
		if in.Trust != assignment.Clean || in.Partitions.Trust != assignment.Clean || d.FenceAfter == 0 {
			return
		}
		in.Partitions.Vacant = map[int]bool{}
		for id := range 10 {
			in.Partitions.Vacant[id] = true
		}
		d = Plan(in)
		next := after(in, d)
		for id, s := range in.State.Partitions.Owners {
			epoch, quarantined := next.Quarantine.Since(id)
			if quarantined && !in.Served[epoch] && !s.Subset(next.Partitions.Owners[id]) {
				t.Fatalf("id %d is in quarantine, and loses %s", id, s.Minus(next.Partitions.Owners[id]))
			}
		}
	})
}

func TestARowOfALaterVersionIsLeftAsItIs(t *testing.T) {
	forAllDivided(t, func(t *rapid.T, in Input, _ Decision) {
		in.Partitions.Trust, in.State.Partitions = assignment.Unreadable, nil
		if d := Plan(in); d.Partitions.Changed || after(in, d).Partitions != nil {
			t.Fatalf("it is written anew: %+v", after(in, d).Partitions)
		}
	})
}

func TestWithPrimaryThePlannerJoinsOnlyWhenItHasHeldItsIDForLong(t *testing.T) {
	forAllDivided(t, func(t *rapid.T, in Input, _ Decision) {
		in.Count, in.Trust, in.Partitions.Trust, in.Intent = 2, assignment.Clean, assignment.Clean, Claim
		in.State.Slots, in.State.UIDs = slots{0: "p0", 1: "p1"}, slots{0: "uid-p0", 1: "uid-p1"}
		in.Pods = []Pod{pod("p0", 1, holds(0)), pod("p1", 1, holds(1))}
		none, all := placement.Set{}, placement.Between(0, someParts-1)
		in.Pods[0].Receipt.Partitions, in.Pods[1].Receipt.Partitions = &none, &all
		in.State.Partitions.Strategy, in.Partitions.Wish.Strategy = placement.NamePrimary, placement.NamePrimary
		in.State.Partitions.Owners = placement.Owners{1: all}
		next := after(in, Plan(in))
		if _, joins := next.Partitions.Owners[0]; joins != in.Partitions.Joins {
			t.Fatalf("it has held its id for long: %v; it joins: %v", in.Partitions.Joins, joins)
		}
	})
}
