package proposal

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

const someParts = 12

// genRow draws a row that any program may have written, or none.
func genRow(t *rapid.T, strategy string) *assignment.Row {
	if rapid.IntRange(0, 4).Draw(t, "wiped") == 0 {
		return nil
	}
	row := &assignment.Row{Count: rapid.IntRange(0, someParts).Draw(t, "parts"), Strategy: strategy, Owners: placement.Owners{}}
	for k := range someParts {
		if id := rapid.IntRange(-1, 9).Draw(t, "owner"); id >= 0 {
			row.Owners[id] = row.Owners[id].Union(placement.Of(k))
		}
	}
	return row
}

// genDivided draws an owner with partitions, and pods that may lock the same ones.
func genDivided() *rapid.Generator[Input] {
	return rapid.Custom(func(t *rapid.T) Input {
		in := genInput().Draw(t, "in")
		strategy := rapid.SampledFrom(append(placement.Names(), "newest")).Draw(t, "strategy")
		in.State.Row = genRow(t, strategy)
		if rapid.IntRange(0, 2).Draw(t, "wish") > 0 {
			in.Partitions.Wish = assignment.Wish{HasCount: true, Count: rapid.IntRange(0, someParts).Draw(t, "wants"), Strategy: strategy}
		}
		in.Partitions.Joins = map[int]bool{}
		in.Partitions.AtOnce = rapid.Bool().Draw(t, "at once")
		for id := range 4 {
			in.Partitions.Joins[id] = rapid.Bool().Draw(t, "joins")
		}
		in.Partitions.Vacant = map[int]string{rapid.IntRange(0, 9).Draw(t, "vacant"): rapid.SampledFrom([]string{"", "p0", "p1", "p2"}).Draw(t, "never takes it")}
		for i := range in.Pods {
			if r := &in.Pods[i].Receipt; r.State == receipt.Locks && rapid.IntRange(0, 4).Draw(t, "idle") > 0 {
				first := rapid.IntRange(0, someParts-1).Draw(t, "first")
				r.Share.Of, r.Share.Partitions = someParts, placement.Between(first, first+rapid.IntRange(-1, 2).Draw(t, "more"))
			}
		}
		return in
	})
}

func TestWhatOnePodLocksIsGivenToNoOtherID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genDivided().Draw(t, "in")
		locksAreHeeded(t, in, Plan(in))
	})
}

// locksAreHeeded checks that an id gets no partition that others lock, and that it has what its holder alone locks.
func locksAreHeeded(t *rapid.T, in Input, d Decision) {
	next := after(in, d)
	if next.Row == nil || d.Partitions.Unknown != "" {
		return
	}
	before := placement.Owners{}
	if in.State.Row != nil {
		before = in.State.Row.Owners
	}
	all := placement.Between(0, someParts)
	for i := range in.Pods {
		p := &in.Pods[i]
		if in.pod(p.Name) == nil {
			continue
		}
		mine := -1
		if id, has := next.Slots.Of(p.Name); has && p.Receipt.State == receipt.Locks {
			mine = id
		}
		alone := p.Receipt.LocksOf(all)
		for j := range in.Pods {
			if i != j && in.pod(in.Pods[j].Name) != nil {
				alone = alone.Minus(in.Pods[j].Receipt.LocksOf(all))
			}
		}
		for id, set := range next.Row.Owners {
			if id != mine && !set.Minus(before[id]).Intersect(p.Receipt.LocksOf(all)).Empty() {
				t.Fatalf("id %d gets %s, and %s locks %s", id, set.Minus(before[id]), p.Name, p.Receipt.LocksOf(all))
			}
			if id != mine && mine >= 0 && !set.Intersect(alone).Empty() {
				t.Fatalf("id %d has %s, and %s alone locks %s", id, set, p.Name, alone)
			}
		}
		if mine >= 0 && !alone.Subset(next.Row.Owners[mine]) {
			t.Fatalf("%s alone locks %s, and id %d has %v", p.Name, alone, mine, next.Row.Owners)
		}
	}
}

func TestPlanningPartitionsAgainChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genDivided().Draw(t, "in")
		d := Plan(in)
		in.State = after(in, d)
		if row := in.State.Row; row != nil && d.Partitions.Unknown == "" {
			if _, err := placement.ParseOwners(row.Owners.String(), placement.MaxCount); err != nil {
				t.Fatalf("%v: %v", row, err)
			}
		}
		if again := Plan(in).Next; again != nil {
			t.Fatalf("planned %+v and %v, and again %+v and %v", in.State, in.State.Row, *again, again.Row)
		}
	})
}

// world is a workload whose pods follow the row: they lock what is theirs and unlock what is not to be.
type world struct{ in Input }

func newWorld(t *rapid.T) *world {
	w := &world{Input{Count: rapid.IntRange(1, 6).Draw(t, "count"), Me: "p0", Now: t0}}
	strategy := rapid.SampledFrom([]string{placement.NameSticky, placement.NameRange, placement.NameExternal}).Draw(t, "strategy")
	w.in.State = assignment.State{Slots: slots{}, Row: genRow(t, strategy)}
	w.in.Partitions.Wish = assignment.Wish{HasCount: true, Count: someParts, Strategy: strategy}
	w.in.Partitions.Wish.Target = placement.Owners{rapid.IntRange(0, 5).Draw(t, "wanted"): placement.Between(0, 4)}
	free := placement.Between(0, someParts-1)
	for id := range rapid.IntRange(1, w.in.Count).Draw(t, "held") {
		p := pod(fmt.Sprintf("p%d", id), 1).says(receipt.Locks, id)
		p.Receipt.Share.Of = someParts
		for k := range free.All() {
			if rapid.IntRange(0, 3).Draw(t, "locks") == 0 {
				p.Receipt.Share.Partitions = p.Receipt.Share.Partitions.Union(placement.Of(k))
			}
		}
		free = free.Minus(p.Receipt.Share.Partitions)
		w.in.Pods = append(w.in.Pods, p)
		w.in.State.Slots[id] = p.Name
	}
	return w
}

// plan has a pod plan and write.
func (w *world) plan(t *rapid.T) {
	d := Plan(w.in)
	locksAreHeeded(t, w.in, d)
	w.in.State = after(w.in, d)
}

// follow has each holder unlock what the target gives to others, and lock what the row and the target give to its id and no pod locks.
func (w *world) follow() {
	row := w.in.State.Row
	target, _ := Target(w.in.Count, row, w.in.Partitions.Wish, 0, nil)
	for i := range w.in.Pods {
		share := &w.in.Pods[i].Receipt.Share
		open := row.Owners[share.ID].Intersect(target[share.ID])
		for j := range w.in.Pods {
			if i != j {
				open = open.Minus(w.in.Pods[j].Receipt.Share.Partitions)
			}
		}
		share.Partitions = share.Partitions.Intersect(target[share.ID]).Union(open)
	}
}

func TestPartitionsReachTheirTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.plan(t)
		first, _ := Target(w.in.Count, w.in.State.Row, w.in.Partitions.Wish, 0, nil)
		for range 2 { // unlock and lock, then move, then lock
			w.follow()
			w.plan(t)
		}
		w.follow()
		row := w.in.State.Row
		if !row.Owners.Equal(first) {
			t.Fatalf("the target was %v, and the owners are %v", first, row.Owners)
		}
		for _, p := range w.in.Pods {
			if id := p.Receipt.Slot(); !p.Receipt.Share.Partitions.Equal(row.Owners[id]) {
				t.Fatalf("%s locks %s, and its id has %s", p.Name, p.Receipt.Share.Partitions, row.Owners[id])
			}
		}
		if slices.ContainsFunc(row.Owners.IDs(), func(id int) bool { return id >= w.in.Count }) {
			t.Fatalf("the row has ids above the count: %v", row.Owners)
		}
	})
}

// A program may have a strategy that gives a partition twice, or gives one that does not exist.
func TestAStrategyMaySayAnything(t *testing.T) {
	in := Input{Count: 2, Me: "a", Now: t0, State: assignment.State{Slots: slots{0: "a", 1: "b"}}}
	for id, name := range []string{"a", "b"} {
		p := pod(name, 1).says(receipt.Locks, id)
		p.Receipt.Share.Of = 4
		in.Pods = append(in.Pods, p)
	}
	in.Partitions.Wish = assignment.Wish{HasCount: true, Count: 4, Strategy: "all"}
	all := placement.Between(0, 9)
	in.Partitions.Strategies = func(string) (placement.Strategy, error) {
		return func(placement.Input) placement.Owners { return placement.Owners{0: all, 1: all, 2: all} }, nil
	}
	row := Plan(in).Next.Row
	if want := (placement.Owners{0: placement.Between(0, 3), 1: {}}); !row.Owners.Equal(want) {
		t.Errorf("the owners are %v", row.Owners)
	}
	if target, ok := Target(in.Count, row, in.Partitions.Wish, 0, in.Partitions.Strategies); !ok || !target[1].Equal(all) {
		t.Errorf("the target is %v", target)
	}
	if _, ok := Target(in.Count, nil, in.Partitions.Wish, 0, nil); ok {
		t.Error("there is a target without a row")
	}
}

// The name of a strategy that makes no sense changes nothing.
func TestNonsenseChangesNothing(t *testing.T) {
	in := Input{Count: 1, Me: "a", Now: t0, State: assignment.State{Slots: slots{0: "a"}}, Pods: []Pod{pod("a", 1).says(receipt.Locks, 0)}}
	in.Pods[0].Receipt.Share.Of = 4
	in.Partitions.Wish = assignment.DecodeWish(map[string]string{assignment.PartitionCountKey: "4", assignment.PartitionStrategyKey: "Ω"})
	row := Plan(in).Next.Row
	if row.Strategy != placement.DefaultName {
		t.Errorf("without a row the strategy is %s", row.Strategy)
	}
	row.Strategy = placement.NameRange
	in.State.Row = row
	if d := Plan(in); d.Next != nil {
		t.Errorf("the strategy is %s now", d.Next.Row.Strategy)
	}
}
