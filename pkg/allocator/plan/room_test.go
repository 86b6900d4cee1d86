package plan

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// full returns an owner's room with free bytes left for new entries.
func full(state assignment.State, free int) assignment.Room {
	ours := assignment.Size(state.Encode(assignment.DefaultKey, "owner"))
	return assignment.Room{Others: assignment.SizeLimit - free - ours, All: assignment.SizeLimit - free}
}

// genTight draws an input whose owner has little room or none.
func genTight() *rapid.Generator[Input] {
	return rapid.Custom(func(t *rapid.T) Input {
		in := genInput().Draw(t, "in")
		in.Room = full(in.State, rapid.IntRange(-100, 200).Draw(t, "free"))
		if rapid.IntRange(0, 3).Draw(t, "removed") == 0 {
			in.Room.All = in.Room.Others // somebody removed all of it
			in.Trust = assignment.Foreign
		}
		return in
	})
}

func TestEveryInvariantHoldsWithLittleRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genTight().Draw(t, "in")
		d := Plan(in)
		if d.Next == nil && d.TooLarge != nil && in.Trust != assignment.Clean {
			return // nothing is written
		}
		for _, check := range invariants() {
			check(t, in, d)
		}
		whatIsWrittenFits(t, in, d)
		theDeadGo(t, in, d)
	})
}

func whatIsWrittenFits(t rapid.TB, in Input, d Decision) {
	t.Helper()
	if d.Next == nil {
		return
	}
	limit := assignment.RepairLimit
	for id, name := range d.Next.Slots {
		if p := podNamed(in, name); in.State.Slots[id] != name && (in.Trust == assignment.Clean || !p.locks() || p.Receipt.ID != id) {
			limit = assignment.SizeLimit
		}
	}
	for id, name := range d.Next.Handover {
		if in.State.Handover[id] != name {
			limit = assignment.SizeLimit
		}
	}
	if err := in.Room.Check(*d.Next, limit); err != nil {
		t.Fatalf("%v: %+v", err, *d.Next)
	}
}

func theDeadGo(t rapid.TB, in Input, d Decision) {
	t.Helper()
	next := after(in, d)
	for id, name := range in.State.Slots {
		if p := podNamed(in, name); p.Name == "" && next.Slots[id] == name {
			t.Fatalf("slot %d is still that of %s, which is dead", id, name)
		}
	}
}

// A plan with more room writes all that one with less room does. Hence what fits can be searched for by halves.
func TestMoreRoomTakesNothingAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		most := rapid.IntRange(0, 6).Draw(t, "most")
		less, more := newPlanner(in, most), newPlanner(in, most+1)
		a, b := less.decide(), more.decide()
		if n := less.added(); n > most || more.added() < n || more.added() > n+1 || (more.added() > n && n < most) {
			t.Fatalf("%d of at most %d were added, then %d", n, most, more.added())
		}
		for _, c := range slices.Concat(a.Filled, a.HandOver.Asked) {
			if !slices.Contains(b.Filled, c) && !slices.Contains(b.HandOver.Asked, c) {
				t.Fatalf("with room for %d: %+v and %+v, with more: %+v and %+v", most, a.Filled, a.HandOver.Asked, b.Filled, b.HandOver.Asked)
			}
		}
	})
}

// Who looks for what fits among thousands plans a dozen times and not thousands of times.
func TestAPlanAtTheLimitIsCheap(t *testing.T) {
	const pods = 5_000
	in := Input{Count: pods, Me: podOf(0), Trust: assignment.Clean, Now: t0}
	for i := range pods {
		in.Pods = append(in.Pods, pod(podOf(i), pods-i))
	}
	in.Room = assignment.Room{Others: assignment.SizeLimit / 2, All: assignment.SizeLimit / 2}
	d := Plan(in)
	if d.TooLarge == nil || len(d.Filled) != d.TooLarge.Fits {
		t.Errorf("%d slots were filled: %v", len(d.Filled), d.TooLarge)
	}
	if plans := testing.AllocsPerRun(1, func() { Plan(in) }) / testing.AllocsPerRun(1, func() { newPlanner(in, pods/2).decide() }); plans > 20 {
		t.Errorf("it takes as much as %.0f plans", plans)
	}
}

func podOf(i int) string { return fmt.Sprintf("worker-%045d", i) }
