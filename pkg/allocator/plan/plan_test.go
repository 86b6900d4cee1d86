package plan

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

var t0 = time.UnixMilli(1795219200123).UTC() //nolint:gochecknoglobals // the time of all tests

type slots = assignment.Slots

// pod returns a live sibling, made age seconds before t0.
func pod(name string, age int, more ...func(*Pod)) Pod {
	p := Pod{
		Name: name, UID: "uid-" + name, Created: t0.Add(-time.Duration(age) * time.Second), Controller: "rs-1",
		Owned: true, Ordinal: NoOrdinal,
	}
	for _, m := range more {
		m(&p)
	}
	return p
}

func holds(id int) func(*Pod) { return holdsSince(id, 100) }

func holdsSince(id int, epoch int64) func(*Pod) {
	return func(p *Pod) { p.Receipt = &assignment.Receipt{UID: p.UID, Owner: "o", ID: id, Epoch: epoch} }
}
func gives(id int) func(*Pod) {
	return func(p *Pod) {
		p.Receipt = &assignment.Receipt{UID: p.UID, Owner: "o", GaveUp: true, ID: id, Gives: true}
	}
}

func gaveUp(p *Pod)            { p.Receipt = &assignment.Receipt{UID: p.UID, Owner: "o", GaveUp: true} }
func waits(p *Pod)             { p.Receipt = &assignment.Receipt{UID: p.UID, Owner: "o", Waits: true} }
func terminating(p *Pod)       { p.Terminating = true }
func relabelled(p *Pod)        { p.Owned = false }
func otherRevision(p *Pod)     { p.Controller = "rs-2" }
func ordinal(n int) func(*Pod) { return func(p *Pod) { p.Ordinal = n } }

// decide plans for an owner whose entries have the UIDs of the pods that these tests make, unless the input has others.
func decide(in Input) Decision { return Plan(withUIDs(in)) }

func withUIDs(in Input) Input {
	if in.State.UIDs == nil {
		in.State.UIDs = slots{}
		for id, name := range in.State.Slots {
			in.State.UIDs[id] = assignment.ShortUID("uid-" + name)
		}
	}
	return in
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Input
		want slots // nil: nothing to do
	}{
		"a first pod assigns all its siblings, oldest first": {
			in:   Input{Count: 3, Me: "b", Pods: []Pod{pod("a", 1), pod("b", 3), pod("c", 2)}},
			want: slots{0: "b", 1: "c", 2: "a"},
		},
		"pods of one age are ordered by name": {
			in:   Input{Count: 2, Me: "b", Pods: []Pod{pod("b", 1), pod("a", 1)}},
			want: slots{0: "a", 1: "b"},
		},
		"where slots are scarce the planner goes before an older sibling that may never start": {
			in: Input{Count: 1, Me: "n", Trust: assignment.Clean, Pods: []Pod{pod("stuck", 9), pod("n", 1)}}, want: slots{0: "n"},
		},
		"and then siblings that have shown life, oldest first": {
			in: Input{
				Count: 3, Me: "n", Trust: assignment.Clean, Pods: []Pod{pod("stuck", 9), pod("a", 8, waits), pod("b", 7, waits), pod("c", 6, waits), pod("n", 1)},
			},
			want: slots{0: "n", 1: "a", 2: "b"},
		},
		"what they do not need is left to who plans for itself": {
			in: Input{
				Count: 3, Me: "n", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "x"}},
				Pods: []Pod{pod("x", 9, holds(0), otherRevision), pod("g", 9, gaveUp, otherRevision), pod("stuck", 9), pod("n", 1)},
			},
			want: slots{0: "x", 1: "n"},
		},
		"a slot in quarantine is not scarce": {
			in: Input{
				Count: 2, Me: "n", Trust: assignment.Clean, FenceAfter: time.Second, State: assignment.State{Quarantine: assignment.Quarantine{{From: 0, To: 0, Epoch: 1}}},
				Pods: []Pod{pod("a", 9), pod("n", 1)},
			},
			want: slots{1: "a"},
		},
		"another revision's pods plan for themselves": {
			in:   Input{Count: 3, Me: "a", Pods: []Pod{pod("a", 1), pod("b", 2, otherRevision)}},
			want: slots{0: "a"},
		},
		"nothing to do when everybody has a slot": {
			in: Input{Count: 2, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a", 1: "b"}, Epoch: 5},
				Pods: []Pod{pod("a", 1, holds(0)), pod("b", 1, holds(1))}},
		},
		"a dead holder's slot goes to the waiter": {
			in: Input{Count: 2, Me: "c", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a", 1: "b"}},
				Pods: []Pod{pod("b", 9, holds(1)), pod("c", 1)}},
			want: slots{0: "c", 1: "b"},
		},
		"a Terminating pod keeps its slot": {
			in: Input{Count: 1, Me: "c", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}},
				Pods: []Pod{pod("a", 9, holds(0), terminating), pod("c", 1)}},
		},
		"a Terminating pod gets none": {
			in: Input{Count: 2, Me: "c", Pods: []Pod{pod("a", 9, terminating), pod("c", 1)}}, want: slots{0: "c"},
		},
		"a relabelled pod keeps its slot": {
			in: Input{Count: 1, Me: "c", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}},
				Pods: []Pod{pod("a", 9, relabelled), pod("c", 1)}},
		},
		"entries at or above the count stay while their pod lives": {
			in: Input{Count: 1, Me: "c", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a", 5: "b"}},
				Pods: []Pod{pod("a", 9, holds(0)), pod("b", 9, holds(5)), pod("c", 1)}},
		},
		"free entries at or above the count go": {
			in: Input{Count: 1, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a", 5: "b"}},
				Pods: []Pod{pod("a", 9, holds(0))}},
			want: slots{0: "a"},
		},
		"a receipt locks its slot in a clean map": {
			in: Input{Count: 2, Me: "c", Trust: assignment.Clean, State: assignment.State{Slots: slots{1: "b"}},
				Pods: []Pod{pod("a", 9, holds(0), otherRevision), pod("b", 9, holds(1)), pod("c", 1)}},
			want: slots{0: "a", 1: "b"},
		},
		"in a map that is not clean the receipts are the assignment": {
			in: Input{Count: 3, Me: "c", State: assignment.State{Slots: slots{0: "b", 1: "a", 2: "x"}},
				Pods: []Pod{pod("a", 9, holds(0)), pod("b", 9, holds(1)), pod("c", 1)}},
			want: slots{0: "a", 1: "b", 2: "c"},
		},
		"what a map that is not clean says of pods without a receipt is ignored": {
			in: Input{Count: 2, Me: "c", State: assignment.State{Slots: slots{0: "b", 1: "c"}},
				Pods: []Pod{pod("b", 1), pod("c", 5)}},
			want: slots{0: "c", 1: "b"},
		},
		"a slot that two receipts name is written for neither, whichever is newer": {
			in:   Input{Count: 3, Me: "c", Pods: []Pod{pod("a", 9, holdsSince(0, 7)), pod("b", 1, holdsSince(0, 8)), pod("c", 1, holds(1))}},
			want: slots{1: "c"},
		},
		"nor while the map is clean": {
			in: Input{Count: 2, Me: "c", Trust: assignment.Clean, State: assignment.State{Slots: slots{1: "c"}},
				Pods: []Pod{pod("a", 9, holdsSince(0, 7)), pod("b", 1, holdsSince(0, 8)), pod("c", 1, holds(1))}},
		},
		"the entry of a clean map decides between two receipts": {
			in: Input{Count: 2, Me: "c", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}},
				Pods: []Pod{pod("a", 9, holdsSince(0, 7)), pod("b", 1, holdsSince(0, 8)), pod("c", 1)}},
			want: slots{0: "a", 1: "c"},
		},
		"the receipt that is left is restored": {
			in: Input{Count: 2, Me: "c", Trust: assignment.Clean, State: assignment.State{Slots: slots{1: "c"}},
				Pods: []Pod{pod("a", 9, holdsSince(0, 7)), pod("b", 1), pod("c", 1, holds(1))}},
			want: slots{0: "a", 1: "c"},
		},
		"whose receipt names a slot gets no other one, because it may act under that": {
			in:   Input{Count: 3, Me: "c", Pods: []Pod{pod("a", 9, holds(0)), pod("b", 8, holds(0)), pod("c", 1)}},
			want: slots{1: "c"},
		},
		"nor one that it asked for": {
			in: Input{Count: 3, Me: "c", Trust: assignment.Clean, State: assignment.State{Slots: slots{2: "c"}, Handover: slots{1: "a"}},
				Pods: []Pod{pod("a", 9, holds(0)), pod("b", 8, holds(0)), pod("c", 1, holds(2))}},
			want: slots{2: "c"},
		},
		"a receipt whose epoch cannot be read locks its slot": {
			in:   Input{Count: 2, Me: "b", Pods: []Pod{pod("a", 1, holdsSince(0, 0)), pod("b", 9)}},
			want: slots{0: "a", 1: "b"},
		},
		"a relabelled pod without a slot gets none": {
			in: Input{Count: 2, Me: "a", Trust: assignment.Clean, Pods: []Pod{pod("a", 9, relabelled)}},
		},
		"who gave up waits while live pods outnumber the count": {
			in: Input{Count: 1, Me: "a", Trust: assignment.Clean, Pods: []Pod{pod("a", 9, gaveUp), pod("b", 1, otherRevision)}},
		},
		"who gave up gets a slot when there is room for all": {
			in: Input{Count: 2, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "b"}},
				Pods: []Pod{pod("a", 9, gaveUp), pod("b", 1, holds(0))}},
			want: slots{0: "b", 1: "a"},
		},
		"a mover gives and takes in one write": {
			in: Input{Count: 1, Me: "a", Intent: Move, Trust: assignment.Clean, State: assignment.State{Slots: slots{4: "a"}},
				Pods: []Pod{pod("a", 9, gaveUp)}},
			want: slots{0: "a"},
		},
		"a released slot goes to a waiting sibling in the same write": {
			in: Input{Count: 1, Me: "a", Intent: Release, Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}},
				Pods: []Pod{pod("a", 9, gaveUp), pod("b", 1)}},
			want: slots{0: "b"},
		},
		"who releases wants no slot back": {
			in: Input{Count: 1, Me: "a", Intent: Release, Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}},
				Pods: []Pod{pod("a", 9, gaveUp)}},
			want: slots{},
		},
		"an ordinal waits for its slot, the others get the lowest": {
			in:   Input{Count: 4, Me: "w-2", Pods: []Pod{pod("w-2", 9, ordinal(2)), pod("w-9", 9, ordinal(9)), pod("w-0", 1, ordinal(0))}},
			want: slots{0: "w-0", 1: "w-9", 2: "w-2"},
		},
		"an ordinal whose slot another live pod has gets another one": {
			in: Input{Count: 3, Me: "w-1", Trust: assignment.Clean, State: assignment.State{Slots: slots{1: "x"}},
				Pods: []Pod{pod("x", 9, holds(1)), pod("w-1", 3, ordinal(1)), pod("w-0", 1, ordinal(0))}},
			want: slots{0: "w-0", 1: "x", 2: "w-1"},
		},
		"it waits for one that a Terminating pod has, although others are free": {
			in: Input{Count: 2, Me: "w-1", Trust: assignment.Clean, State: assignment.State{Slots: slots{1: "x"}},
				Pods: []Pod{pod("x", 9, holds(1), terminating), pod("w-1", 1, ordinal(1))}},
		},
		"a pod with a dead pod's name is another pod": {
			in: Input{Count: 1, Me: "w-0", Trust: assignment.Clean,
				State: assignment.State{Slots: slots{0: "w-0"}, UIDs: slots{0: "old"}}, Pods: []Pod{pod("w-0", 1, ordinal(0))}},
			want: slots{0: "w-0"},
		},
		"a sweep gives nothing out": {
			in:   Input{Count: 2, Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "dead"}}, Pods: []Pod{pod("b", 1)}},
			want: slots{},
		},
		"a count of zero has no slots": {
			in: Input{Count: 0, Me: "a", Trust: assignment.Clean, Pods: []Pod{pod("a", 1)}},
		},
		"a free slot that is asked for goes to its requester": {
			in: Input{Count: 2, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}, Handover: slots{1: "n"}},
				Pods: []Pod{pod("a", 9, holds(0)), pod("b", 8), pod("n", 1, otherRevision)}},
			want: slots{0: "a", 1: "n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Now = t0
			got := decide(tc.in)
			switch {
			case tc.want == nil && got.Next != nil:
				t.Errorf("Plan writes %v, want nothing to do", got.Next.Slots)
			case tc.want != nil && got.Next == nil:
				t.Errorf("Plan has nothing to do, want %v", tc.want)
			case tc.want != nil && !maps.Equal(got.Next.Slots, tc.want):
				t.Errorf("Plan writes %v, want %v", got.Next.Slots, tc.want)
			}
		})
	}
}

func TestOneWritesForAllWhoGive(t *testing.T) {
	in := Input{
		Count: 4, Me: "a", Trust: assignment.Clean, Now: t0, Intent: Move, State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "c", 3: "d"}, Handover: slots{1: "n"}},
		Pods: []Pod{pod("a", 9, gives(0)), pod("b", 9, gives(1)), pod("c", 9, gives(7)), pod("d", 9, holds(3)), pod("n", 1, otherRevision)},
	}
	d := decide(in)
	if got, want := after(in, d).Slots, (slots{1: "n", 2: "c", 3: "d"}); !maps.Equal(got, want) {
		t.Errorf("the map is %v, want %v: who gives another slot keeps this one", got, want)
	}
	in.Intent, in.State, in.Pods = Claim, assignment.State{Slots: slots{}}, []Pod{pod("a", 9, gives(0))}
	in.Count = 1
	if d := decide(in); d.Next != nil {
		t.Errorf("a pod gets the slot that it is still giving: %v", d.Next.Slots)
	}
}

// A receipt that came after the map was restored is that of a pod which was late with it and withdraws it again. The slot's last
// holder may have vanished meanwhile while its process runs.
func TestALateReceiptEndsNoQuarantine(t *testing.T) {
	const freed = 150
	in := Input{
		Count: 2, Me: "a", Trust: assignment.Clean, Now: t0, FenceAfter: time.Minute,
		State: assignment.State{
			Slots: slots{0: "a"}, Epoch: freed, FenceAfter: time.Minute, Quarantine: assignment.Quarantine{{From: 1, To: 1, Epoch: freed}},
		},
		Pods: []Pod{pod("a", 9, holds(0)), pod("late", 9, holds(1))},
	}
	if d := decide(in); d.Next != nil {
		t.Errorf("slot 1 is in quarantine, but the plan makes %+v", d.Next)
	}
	in.Served = map[int64]bool{freed: true}
	if d := decide(in); d.Next == nil || d.Next.Slots[1] != "late" {
		t.Errorf("after the quarantine the plan makes %+v, want slot 1 for the pod with the receipt", d.Next)
	}
}

// Which of the two acts is not known, and no clean map names it from this write on.
func TestTwoReceiptsPutTheirSlotIntoQuarantine(t *testing.T) {
	strict := func(p *Pod) { p.Receipt.FenceAfter = time.Minute }
	d := Plan(Input{
		Count: 3, Me: "c", Now: t0, FenceAfter: time.Minute,
		Pods: []Pod{pod("a", 9, holdsSince(0, 7), strict), pod("b", 8, holdsSince(0, 8), strict), pod("c", 1, holds(1), strict)},
	})
	for id, want := range []bool{true, false, true} {
		if _, got := d.Next.Quarantine.Since(id); got != want {
			t.Errorf("slot %d in quarantine: %t, want %t", id, got, want)
		}
	}
}

func TestStranded(t *testing.T) {
	clean := assignment.State{Slots: slots{1: "c"}}
	for name, tc := range map[string]struct {
		in   Input
		want bool
	}{
		"another pod has a receipt for my slot": {Input{Pods: []Pod{pod("me", 1, holds(0)), pod("a", 9, holds(0)), pod("c", 9, holds(1))}}, true},
		"my slot is another pod's":              {Input{Pods: []Pod{pod("me", 1, holds(1)), pod("c", 9, holds(1))}}, true},
		"my slot is restored":                   {Input{Pods: []Pod{pod("me", 1, holds(0)), pod("c", 9, holds(1))}}, false},
		"I have no receipt":                     {Input{Pods: []Pod{pod("me", 1), pod("c", 9, holds(1))}}, false},
		"I gave up":                             {Input{Pods: []Pod{pod("me", 1, gaveUp), pod("c", 9, holds(1))}}, false},
	} {
		tc.in.Me, tc.in.Count, tc.in.Trust, tc.in.State, tc.in.Now = "me", 3, assignment.Clean, clean, t0
		if got := Plan(tc.in).Stranded; got != tc.want {
			t.Errorf("%s: stranded is %t", name, got)
		}
	}
}

func TestRequestsThatCannotBeMetGo(t *testing.T) {
	d := decide(Input{
		Count: 3, Me: "a", Trust: assignment.Clean, Now: t0,
		State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "c"}, Handover: slots{0: "gone", 1: "a", 2: "n", 7: "n2"}},
		Pods:  []Pod{pod("a", 9, holds(0)), pod("b", 9, holds(1)), pod("c", 9, holds(2)), pod("n", 1), pod("n2", 1)},
	})
	if d.Next == nil || !maps.Equal(d.Next.Handover, slots{2: "n"}) {
		t.Errorf("got %+v, want only n's request for slot 2: the others' requester is gone, holds a slot, or asks beyond the count", d.Next)
	}
}

func TestEpochOutgrowsEverything(t *testing.T) {
	for name, tc := range map[string]struct {
		old, receipt int64
		want         int64
	}{
		"the clock": {1, 1, t0.UnixMilli()},
		"the owner": {t0.UnixMilli() + 5, 1, t0.UnixMilli() + 6},
		"a receipt": {1, t0.UnixMilli() + 9, t0.UnixMilli() + 10},
	} {
		d := decide(Input{Count: 2, Me: "b", Now: t0, State: assignment.State{Epoch: tc.old}, Pods: []Pod{pod("a", 1, holdsSince(0, tc.receipt)), pod("b", 1)}})
		if d.Next.Epoch != tc.want {
			t.Errorf("%s is ahead: epoch %d, want %d", name, d.Next.Epoch, tc.want)
		}
	}
}

func TestCommitWritesOnlyTheEpoch(t *testing.T) {
	state := assignment.State{Slots: slots{0: "a"}, Epoch: 5}
	d := decide(Input{Count: 1, Me: "a", Trust: assignment.Clean, Commit: true, Now: t0, State: state, Pods: []Pod{pod("a", 1, gaveUp)}})
	if d.Next == nil || !maps.Equal(d.Next.Slots, state.Slots) || d.Next.Epoch <= 5 {
		t.Errorf("got %+v, want the same map with a new epoch", d.Next)
	}
}

// A pod that is deleted by force and made again with its name (kubectl replace --force) may run on beside its successor.
func TestASuccessorOfTheSameNameWaitsForTheQuarantine(t *testing.T) {
	in := Input{
		Count: 2, Me: "a", Trust: assignment.Clean, Now: t0, FenceAfter: time.Minute,
		State: assignment.State{Slots: slots{0: "a", 1: "b"}, UIDs: slots{0: "earlier", 1: "uid-b"}, Epoch: 150, FenceAfter: time.Minute},
		Pods:  []Pod{pod("a", 1), pod("b", 9, holds(1))},
	}
	d := Plan(in)
	if d.Next == nil {
		t.Fatal("the successor is taken for the pod that had its name")
	}
	since, quarantined := d.Next.Quarantine.Since(0)
	if _, given := d.Next.Slots[0]; given || !quarantined || since != d.Next.Epoch {
		t.Errorf("the plan makes %+v, want slot 0 in quarantine", d.Next)
	}
	in.State, in.Served = *d.Next, map[int64]bool{since: true}
	if d := Plan(in); d.Next == nil || d.Next.Slots[0] != "a" || d.Next.UIDs[0] != "uid-a" {
		t.Errorf("after the quarantine the plan makes %+v, want slot 0 for the successor", d.Next)
	}
}

func TestUIDsGoWithTheirSlots(t *testing.T) {
	d := decide(Input{Count: 2, Me: "w-0", Trust: assignment.Clean, Now: t0,
		State: assignment.State{Slots: slots{0: "w-0", 1: "w-1"}, UIDs: slots{0: "old", 1: "uid-w-1"}},
		Pods:  []Pod{pod("w-0", 1), pod("w-1", 1)}})
	if d.Next == nil || !maps.Equal(d.Next.UIDs, slots{0: "uid-w-0", 1: "uid-w-1"}) {
		t.Errorf("got %+v", d.Next)
	}
	if len(d.Freed) != 1 || d.Freed[0].Cause != CauseReplaced || !slices.Equal(d.Given, []Change{{ID: 0, Pod: "w-0"}}) {
		t.Errorf("freed %v, given %v", d.Freed, d.Given)
	}
}
