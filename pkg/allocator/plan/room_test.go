package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// full returns an owner's room with free bytes left for new entries.
func full(state assignment.State, free int) assignment.Room {
	ours := assignment.Size(state.Encode(assignment.DefaultKey, "owner"))
	return assignment.Room{Others: assignment.SizeLimit - free - ours, All: assignment.SizeLimit - free}
}

// entry is what an entry of a pod with a name of one letter takes, below slot 10.
const entry = len(`"0":"a",`) + len(`"0":"uid-a",`)

func TestPlanForWhatFits(t *testing.T) {
	held := []Pod{pod("a", 9, holds(0)), pod("b", 9, holds(1))}
	both := slots{0: "a", 1: "b"}
	for name, tc := range map[string]struct {
		in   Input
		free int
		want slots
		cut  bool
		// waiting is how many wait, zero where that does not matter.
		waiting int
	}{
		"an entry that just fits": {
			in: Input{Count: 3, Me: "n", State: assignment.State{Slots: both}, Pods: append([]Pod{pod("n", 1)}, held...)}, free: entry,
			want: slots{0: "a", 1: "b", 2: "n"},
		},
		"one byte less": {
			in: Input{Count: 3, Me: "n", State: assignment.State{Slots: both}, Pods: append([]Pod{pod("n", 1)}, held...)}, free: entry - 1,
			want: slots{0: "a", 1: "b"}, cut: true,
		},
		"a dead pod makes room, and its slot is given": {
			in:   Input{Count: 3, Me: "n", State: assignment.State{Slots: both}, Pods: []Pod{held[0], pod("n", 1)}},
			want: slots{0: "a", 1: "n"},
		},
		"but not for two": {
			in:   Input{Count: 3, Me: "n", State: assignment.State{Slots: both}, Pods: []Pod{held[0], pod("n", 1), pod("m", 2)}},
			want: slots{0: "a", 1: "n"}, cut: true,
		},
		"a dead pod goes where nobody else fits": {
			in:   Input{Count: 3, Me: "long", State: assignment.State{Slots: both}, Pods: []Pod{held[0], pod("long", 1)}},
			want: slots{0: "a"}, cut: true,
		},
		"after the planner, one that has shown life": {
			in: Input{
				Count: 5, Me: "n", State: assignment.State{Slots: both}, Pods: append([]Pod{pod("n", 1), pod("k", 8), pod("l", 3, waits), pod("m", 2, waits)}, held...),
			},
			free: 2 * entry,
			want: slots{0: "a", 1: "b", 2: "n", 3: "l"}, cut: true,
		},
		"after those, the oldest": {
			in: Input{
				Count: 6, Me: "n", State: assignment.State{Slots: both}, Pods: append([]Pod{pod("n", 1), pod("k", 7), pod("l", 8), pod("m", 2, waits)}, held...),
			},
			free: 3 * entry,
			want: slots{0: "a", 1: "b", 2: "n", 3: "m", 4: "l"}, cut: true,
		},
		"one that failed is not known to run": {
			in: Input{
				Count: 5, Me: "a", State: assignment.State{Slots: both}, Pods: append([]Pod{pod("l", 8, waits, failed(1)), pod("m", 2, waits)}, held...),
			},
			free: entry,
			want: slots{0: "a", 1: "b", 2: "m"}, cut: true,
		},
		"the same with ordinals": {
			in: Input{
				Count: 5, Me: "n", State: assignment.State{Slots: both},
				Pods: append([]Pod{pod("n", 1, ordinal(3)), pod("k", 8, ordinal(2)), pod("l", 3, ordinal(4), waits)}, held...),
			},
			free: 2 * entry,
			want: slots{0: "a", 1: "b", 3: "n", 4: "l"}, cut: true, waiting: 1,
		},
		"the planner's name fits, and that of an older pod does not": {
			in: Input{
				Count: 4, Me: "n", Pods: append([]Pod{pod("n", 1), pod("older-and-longer", 8)}, held...),
				State: assignment.State{Slots: both, FenceAfter: time.Minute, Quarantine: assignment.Quarantine{{From: 3, To: 3, Epoch: 5}}},
			},
			free: entry,
			want: slots{0: "a", 1: "b", 2: "n"}, cut: true,
		},
		"who gives makes room for another": {
			in: Input{
				Count: 2, Me: "b", Intent: Release, State: assignment.State{Slots: both},
				Pods: []Pod{held[0], pod("b", 9, gives(1), terminating), pod("n", 1, waits), pod("m", 2, waits)},
			},
			want: slots{0: "a", 1: "m"},
		},
		"a receipt that came late waits for room": {
			in: Input{Count: 3, Me: "a", State: assignment.State{Slots: both}, Pods: append([]Pod{pod("n", 1, holds(2))}, held...)}, free: entry - 1,
			want: slots{0: "a", 1: "b"}, cut: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := withUIDs(tc.in)
			in.Trust, in.Now, in.State.Epoch = assignment.Clean, t0, t0.UnixMilli()-1
			in.Room = full(in.State, tc.free)
			d := Plan(in)
			if got := after(in, d); !maps.Equal(got.Slots, tc.want) {
				t.Errorf("got %v, want %v", got.Slots, tc.want)
			}
			if (d.TooLarge != nil) != tc.cut {
				t.Errorf("too large: %v", d.TooLarge)
			}
			if tc.waiting > 0 && d.Waiting != tc.waiting {
				t.Errorf("%d wait, want %d", d.Waiting, tc.waiting)
			}
		})
	}
}

// A request takes room, too, and nobody's work is stopped for one that is not written.
func TestNobodyIsAskedWithoutRoom(t *testing.T) {
	in := withUIDs(Input{
		Count: 1, Me: "n", Trust: assignment.Clean, Now: t0, Rollout: Rollout{Current: true, MaxUnavailable: 1},
		State: assignment.State{Slots: slots{0: "a"}, Epoch: t0.UnixMilli() - 1}, Pods: []Pod{pod("a", 9, holds(0), otherRevision), pod("n", 1, waits)},
	})
	in.Pods[0].Receipt.HandsOver = true
	request := len(assignment.HandoverKey) + len(`{"0":"n"}`)
	for free, asked := range map[int]bool{request: true, request - 1: false} {
		in.Room = full(in.State, free)
		if d := Plan(in); d.HandOver.AskedFor("n") != asked || (d.TooLarge == nil) != asked || (d.Next != nil) != asked {
			t.Errorf("%d bytes are free: %+v", free, d)
		}
	}
}

// Where the receipts are the assignment, all of them are written or none: each may be that of a pod that acts.
func TestARestoreIsWholeOrNone(t *testing.T) {
	in := Input{Count: 3, Me: "n", Now: t0, Pods: []Pod{pod("a", 9, holds(0)), pod("b", 9, holds(1)), pod("n", 1)}}
	restored := withUIDs(Input{State: assignment.State{Slots: slots{0: "a", 1: "b"}, Epoch: t0.UnixMilli()}}).State
	more := assignment.RepairLimit - assignment.SizeLimit
	for free, want := range map[int]slots{entry: {0: "a", 1: "b", 2: "n"}, entry - 1: restored.Slots, -more: restored.Slots, -more - 1: nil} {
		in.Room = assignment.Room{Others: full(restored, free).Others}
		in.Room.All = in.Room.Others
		d := Plan(in)
		if got := after(in, d); !maps.Equal(got.Slots, want) || (d.TooLarge == nil) != (len(want) == 3) || (d.Next == nil) != (want == nil) {
			t.Errorf("%d bytes are free: got %v, want %v: %v", free, got.Slots, want, d.TooLarge)
		}
	}
}

func TestTheErrorIsAboutAll(t *testing.T) {
	in := withUIDs(Input{
		Count: 5, Me: "n", Trust: assignment.Clean, Now: t0, State: assignment.State{Slots: slots{0: "a"}, Epoch: t0.UnixMilli() - 1},
		Pods: []Pod{pod("a", 9, holds(0)), pod("n", 1), pod("m", 1), pod("k", 1)},
	})
	in.Room = full(in.State, entry)
	d := Plan(in)
	if e := d.TooLarge; e == nil || e.Size != assignment.SizeLimit+2*entry || e.Fits != 2 || d.Waiting != 2 {
		t.Errorf("got %+v, %d wait", e, d.Waiting)
	}
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
		for _, c := range slices.Concat(a.Given, a.HandOver.Asked) {
			if !slices.Contains(b.Given, c) && !slices.Contains(b.HandOver.Asked, c) {
				t.Fatalf("with room for %d: %+v and %+v, with more: %+v and %+v", most, a.Given, a.HandOver.Asked, b.Given, b.HandOver.Asked)
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
	if d.TooLarge == nil || len(d.Given) != d.TooLarge.Fits {
		t.Errorf("%d slots were given: %v", len(d.Given), d.TooLarge)
	}
	if plans := testing.AllocsPerRun(1, func() { Plan(in) }) / testing.AllocsPerRun(1, func() { newPlanner(in, pods/2).decide() }); plans > 20 {
		t.Errorf("it takes as much as %.0f plans", plans)
	}
}

func podOf(i int) string { return fmt.Sprintf("worker-%045d", i) }
