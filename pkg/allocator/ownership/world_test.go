package ownership

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

const (
	noID = -1
	// ids and parts bound a world: some ids are at or above the number of slots, some partitions at or above that of partitions.
	ids, parts = 6, 9
	// later is the name of a strategy that only a later version knows.
	later = "range-2"
)

// draw is what a world is drawn with.
type draw struct{ *rapid.T }

func (t draw) upTo(most int, label string) int { return rapid.IntRange(0, most).Draw(t.T, label) }

// oneIn is true once in n, and false in a small world.
func (t draw) oneIn(n int, label string) bool { return t.upTo(n-1, label) == n-1 }

// division says which partition is whose: who[p] is an id, or noID.
func (t draw) division(label string) (who []int) {
	return rapid.SliceOfN(rapid.IntRange(noID, ids-1), parts, parts).Draw(t.T, label)
}

func (t draw) set(label string) placement.Set {
	return placement.Of(rapid.SliceOfNDistinct(rapid.IntRange(0, parts-1), 0, parts, rapid.ID[int]).Draw(t.T, label)...)
}

func ownersOf(who []int) placement.Owners {
	o := placement.Owners{}
	for p, id := range who {
		if id != noID {
			o[id] = o[id].Union(placement.Of(p))
		}
	}
	return o
}

func (t draw) strategy(label string) string {
	return rapid.SampledFrom(placement.Names()).Draw(t.T, label)
}

// before draws what is in force. Its count is such that some partitions may be at or above it.
func (t draw) before() *assignment.Partitions {
	b := &assignment.Partitions{Count: t.upTo(parts, "P"), Strategy: t.strategy("strategy"), Owners: ownersOf(t.division("owners")), Epoch: 7}
	for id := range ids {
		if t.oneIn(3, "member") {
			b.Owners[id] = b.Owners[id].Union(placement.Set{})
		}
	}
	for _, id := range b.Owners.IDs() { // in order, so that the same draws make the same world
		if t.oneIn(6, "is paused") {
			b.Paused = b.Paused.Union(placement.Of(id))
		}
	}
	return b
}

func (t draw) wish(b *assignment.Partitions) assignment.Wish {
	w := assignment.Wish{Target: ownersOf(t.division("wished target"))}
	if b != nil {
		w.HasCount, w.Count, w.Strategy = true, b.Count, b.Strategy
	}
	if t.oneIn(3, "other count") {
		w.HasCount, w.Count = true, t.upTo(parts, "wished count")
	}
	if t.oneIn(3, "other strategy") {
		w.Strategy = rapid.SampledFrom(append(placement.Names(), "")).Draw(t.T, "wished strategy")
	}
	if t.oneIn(5, "no count") {
		w.HasCount, w.Count = false, 0
	}
	return w
}

// holder draws the pod that has an id. owned is what the map gives it.
func (t draw) holder(owned placement.Set) Holder {
	switch t.upTo(5, "holder") {
	case 4:
		return Holder{Unaware: true}
	case 5:
		return Holder{} // it has not taken
	}
	h := Holder{Works: true, Paused: t.oneIn(6, "paused")}
	for p := range owned.All() {
		switch t.upTo(2, "has begun, stopped, or not begun") {
		case 0:
			h.Locks = h.Locks.Union(placement.Of(p))
		case 1:
			h.Yields = h.Yields.Union(placement.Of(p))
		}
	}
	if t.oneIn(4, "foreign locks") {
		h.Locks = h.Locks.Union(t.set("locks")).Minus(h.Yields)
	}
	if t.oneIn(4, "foreign yields") {
		h.Yields = t.set("yields").Minus(h.Locks)
	}
	return h
}

// world draws an owner and pods that may be in any state. It says nothing about trust.
func (t draw) world() Input {
	in := Input{Count: t.upTo(ids-1, "N"), Before: t.before(), Holders: map[int]Holder{}, Vacant: map[int]bool{}, Me: noID, Strategies: placement.Named}
	in.Wish = t.wish(in.Before)
	quarantined := map[int]bool{}
	for id := range ids {
		switch t.upTo(3, "slot") {
		case 0, 1:
			in.Holders[id] = t.holder(in.Before.Owners[id])
			in.Vacant[id] = t.oneIn(4, "had no holder for long") // the planner has not heard of the holder, or gives it the slot
		case 2:
			in.Vacant[id] = t.upTo(1, "for long") == 1
			quarantined[id] = t.oneIn(3, "quarantined")
		}
	}
	for range t.upTo(1, "strays") {
		in.Strays = append(in.Strays, t.set("stray"))
	}
	in.Quarantined = func(id int) bool { return quarantined[id] }
	in.Unserved = t.oneIn(4, "unserved")
	if holders := slices.Sorted(maps.Keys(in.Holders)); len(holders) > 0 {
		in.Me = rapid.SampledFrom(holders).Draw(t.T, "me")
	}
	in.Joins = t.upTo(1, "joins") == 1
	return in
}

// clean draws a world with a clean map.
func (t draw) clean() Input {
	in := t.world()
	in.Trust, in.Clean = assignment.Clean, true
	return in
}

// doubted draws a world in which not all of the map is trusted.
func (t draw) doubted() Input {
	in := t.world()
	in.Trust = rapid.SampledFrom([]assignment.Trust{assignment.Foreign, assignment.Absent, assignment.Untracked, assignment.Clean}).Draw(t.T, "trust")
	if in.Trust == assignment.Absent || t.oneIn(5, "damaged") {
		in.Before = nil
	}
	return in
}

func (t draw) anyWorld() Input {
	if t.upTo(2, "doubted") == 2 {
		return t.doubted()
	}
	return t.clean()
}

// forAll checks what holds in every world that world draws.
func forAll(t *testing.T, world func(draw) Input, check func(*rapid.T, Input, Decision)) {
	t.Helper()
	each(t, func(t *rapid.T) {
		in := world(draw{t})
		t.Logf("world: %s", lazy(func() string { return told(in) }))
		d := Plan(in)
		t.Logf("plan: %s", lazy(func() string { return row(d.Next) }))
		check(t, in, d)
	})
}

// each checks more random cases than rapid does by itself: a rule needs several rare things at once.
func each(t *testing.T, check func(*rapid.T)) {
	t.Helper()
	for range 4 {
		rapid.Check(t, check)
	}
}

// lazy is a text that is made only for a test that fails.
type lazy func() string

func (l lazy) String() string { return l() }

func row(p *assignment.Partitions) string {
	if p == nil {
		return "none"
	}
	return p.Encode()
}

// told tells a world in one line.
func told(in Input) string {
	var b strings.Builder
	fmt.Fprintf(&b, "N=%d, %s (%s, clean %v), wish %+v", in.Count, row(in.Before), in.Trust, in.Clean, in.Wish)
	for _, id := range slices.Sorted(maps.Keys(in.Holders)) {
		h := in.Holders[id]
		fmt.Fprintf(&b, "; holder %d works %v unaware %v paused %v locks %s yields %s", id, h.Works, h.Unaware, h.Paused, h.Locks, h.Yields)
	}
	for id := range ids {
		if in.Vacant[id] || in.quarantined(id) {
			fmt.Fprintf(&b, "; id %d vacant %v quarantined %v", id, in.Vacant[id], in.quarantined(id))
		}
	}
	fmt.Fprintf(&b, "; strays %v, unserved %v, me %d, joins %v", in.Strays, in.Unserved, in.Me, in.Joins)
	return b.String()
}

func (in Input) quarantined(id int) bool { return in.Quarantined != nil && in.Quarantined(id) }

// owners returns who owns what by p; nobody owns anything if it is nil.
func owners(p *assignment.Partitions) placement.Owners {
	if p == nil {
		return nil
	}
	return p.Owners
}

// owner returns the id that owns p, or noID.
func owner(o placement.Owners, p int) int {
	for id, s := range o {
		if s.Contains(p) {
			return id
		}
	}
	return noID
}

// lockers returns the ids of the live pods that lock p. A pod without an id is noID.
func lockers(in Input, p int) (who []int) {
	for id, h := range in.Holders {
		if h.Locks.Contains(p) {
			who = append(who, id)
		}
	}
	for _, s := range in.Strays {
		if s.Contains(p) {
			who = append(who, noID)
		}
	}
	return who
}

// members returns the ids among which the partitions are divided.
func members(row *assignment.Partitions, count int) (ids []int) {
	for _, id := range owners(row).IDs() {
		if id < count && !row.Paused.Contains(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// target returns who should own what, by the strategy that is to be in force and what was read of the owner.
func target(t rapid.TB, next *assignment.Partitions, in Input) placement.Owners {
	t.Helper()
	strategy, err := placement.Named(next.Strategy)
	if err != nil {
		t.Fatal(err)
	}
	return strategy(placement.Input{
		Partitions: next.Count, Count: in.Count, Members: members(next, in.Count), Owners: owners(in.Before), Target: in.Wish.Target,
	})
}

// withheldBy reports whether a live pod below the count does not work on partitions.
func withheldBy(in Input) bool {
	for id, h := range in.Holders {
		if h.Unaware && id < in.Count {
			return true
		}
	}
	return false
}
