package plan

import (
	"reflect"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

func noController(p *Pod) { p.Controller = "" }

// What a plan tells beside the map that it makes: Events, logs and the reasons for waiting are made of it.
func TestDecisions(t *testing.T) {
	dead, replaced, given, unsealed := CauseDead, CauseReplaced, CauseGiven, CauseUnsealed
	minute := func(p *Pod) { p.Receipt.FenceAfter = time.Minute }
	for name, tc := range map[string]struct {
		in   Input
		want Decision // but Next
		next slots    // nil: nothing is written
	}{
		"who is gone, who was replaced, who gives": {
			in: Input{
				Count: 4, Me: "c", Trust: assignment.Clean,
				State: assignment.State{Slots: slots{0: "x", 1: "b", 2: "c", 3: "d"}, UIDs: slots{0: "uid-x", 1: "older", 2: "uid-c", 3: "uid-d"}},
				Pods:  []Pod{pod("b", 2), pod("c", 9, holds(2)), pod("d", 9, gives(3))},
			},
			want: Decision{
				Freed: []Change{{0, "x", dead}, {1, "b", replaced}, {3, "d", given}}, Given: []Change{{ID: 0, Pod: "d"}, {ID: 1, Pod: "b"}}, Live: 3,
			},
			next: slots{0: "d", 1: "b", 2: "c"},
		},
		"a slot that goes to a new pod with the old one's name was given, beside one that stays free": {
			in: Input{
				Count: 2, Me: "w-1", Trust: assignment.Clean,
				State: assignment.State{Slots: slots{0: "w-0", 1: "w-1"}, UIDs: slots{0: "older", 1: "older"}}, Pods: []Pod{pod("w-1", 1, ordinal(1))},
			},
			want: Decision{Freed: []Change{{0, "w-0", dead}, {1, "w-1", replaced}}, Given: []Change{{ID: 1, Pod: "w-1"}}, Live: 1},
			next: slots{1: "w-1"},
		},
		"a slot that its holder gives and gets again, beside one of a pod that is gone": {
			in: Input{
				Count: 3, Me: "c", Trust: assignment.Clean, Intent: Move, State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "c", 5: "x"}},
				Pods: []Pod{pod("a", 9, holds(0)), pod("b", 9, holds(1)), pod("c", 9, gaveUp)},
			},
			want: Decision{Freed: []Change{{2, "c", given}, {5, "x", dead}}, Given: []Change{{ID: 2, Pod: "c"}}, Live: 3},
			next: slots{0: "a", 1: "b", 2: "c"},
		},
		"or beside nothing, where the map stays as it is": {
			in: Input{
				Count: 3, Me: "c", Trust: assignment.Clean, Intent: Move, State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "c"}},
				Pods: []Pod{pod("a", 9, holds(0)), pod("b", 9, holds(1)), pod("c", 9, gaveUp)},
			},
			want: Decision{Freed: []Change{{2, "c", given}}, Given: []Change{{ID: 2, Pod: "c"}}, Live: 3},
		},
		"in a map that is not clean, entries that no receipt backs": {
			in: Input{
				Count: 4, Me: "c", State: assignment.State{Slots: slots{0: "x", 1: "b", 2: "c", 3: "a"}},
				Pods: []Pod{pod("a", 9, holds(0)), pod("b", 9), pod("c", 9, holds(2))},
			},
			want: Decision{
				Freed: []Change{{0, "x", dead}, {1, "b", unsealed}, {3, "a", unsealed}}, Given: []Change{{ID: 0, Pod: "a"}, {ID: 1, Pod: "b"}}, Live: 3,
			},
			next: slots{0: "a", 1: "b", 2: "c"},
		},
		"a map that is not clean is written again although nothing changes": {
			in:   Input{Count: 1, Me: "a", State: assignment.State{Slots: slots{0: "a"}}, Pods: []Pod{pod("a", 9, holds(0))}},
			want: Decision{Live: 1}, next: slots{0: "a"},
		},
		"a clean one is not": {
			in:   Input{Count: 1, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}}, Pods: []Pod{pod("a", 9, holds(0))}},
			want: Decision{Live: 1},
		},
		"unless the planner needs a write of its own": {
			in:   Input{Count: 1, Me: "a", Trust: assignment.Clean, Commit: true, State: assignment.State{Slots: slots{0: "a"}}, Pods: []Pod{pod("a", 9, holds(0))}},
			want: Decision{Live: 1}, next: slots{0: "a"},
		},
		"what is freed is told in slot order": {
			in: Input{
				Count: 2, Me: "a", Intent: Release, Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a", 1: "x"}}, Pods: []Pod{pod("a", 9, gaveUp)},
			},
			want: Decision{Freed: []Change{{0, "a", given}, {1, "x", dead}}, Live: 1}, next: slots{},
		},
		"a slot that is released while another pod's receipt names it goes to nobody else": {
			in: Input{
				Count: 1, Me: "a", Intent: Release, Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}},
				Pods: []Pod{pod("a", 9, gaveUp), pod("b", 9, holds(0), otherRevision), pod("c", 1, waits)},
			},
			want: Decision{Freed: []Change{{0, "a", given}}, Live: 3, Waiting: 1, Scarce: true}, next: slots{},
		},
		"how many wait": {
			in: Input{
				Count: 1, Me: "b", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}},
				Pods: []Pod{pod("a", 9, holds(0)), pod("b", 1), pod("c", 2), pod("w-0", 3, ordinal(0)), pod("d", 1, otherRevision)},
			},
			want: Decision{Waiting: 3, Live: 5, Scarce: true},
		},
		"who waits for the slot of its ordinal": {
			in: Input{
				Count: 2, Me: "w-0", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}},
				Pods: []Pod{pod("a", 9, holds(0), terminating), pod("w-0", 3, ordinal(0))},
			},
			want: Decision{Waiting: 1, Live: 2},
		},
		"a pod without a controller gets a slot": {
			in:   Input{Count: 2, Me: "a", Trust: assignment.Clean, Pods: []Pod{pod("a", 1, noController)}},
			want: Decision{Given: []Change{{ID: 0, Pod: "a"}}, Live: 1}, next: slots{0: "a"},
		},
		"two of them are no siblings": {
			in:   Input{Count: 2, Me: "a", Trust: assignment.Clean, Pods: []Pod{pod("a", 1, noController), pod("b", 2, noController)}},
			want: Decision{Given: []Change{{ID: 0, Pod: "a"}}, Live: 2}, next: slots{0: "a"},
		},
		"a sibling that made room for another revision waits beside a free slot": {
			in: Input{
				Count: 2, Me: "a", Trust: assignment.Clean, Pods: []Pod{pod("a", 1), pod("b", 9, gaveUp), pod("n", 1, otherRevision)},
			},
			want: Decision{Given: []Change{{ID: 0, Pod: "a"}}, Waiting: 1, Live: 3, Barred: 1, Scarce: true}, next: slots{0: "a"},
		},
		"so does the planner, and its siblings plan for themselves": {
			in: Input{
				Count: 2, Me: "b", Trust: assignment.Clean, Pods: []Pod{pod("a", 1), pod("b", 9, gaveUp), pod("n", 1, otherRevision)},
			},
			want: Decision{Waiting: 2, Live: 3, Barred: 1, Scarce: true},
		},
		"who insists does so for itself only": {
			in: Input{
				Count: 2, Me: "b", Insist: true, Trust: assignment.Clean, Pods: []Pod{pod("a", 9, gaveUp), pod("b", 9, gaveUp), pod("n", 1, otherRevision)},
			},
			want: Decision{Given: []Change{{ID: 0, Pod: "b"}}, Waiting: 1, Live: 3, Barred: 1, Scarce: true}, next: slots{0: "b"},
		},
		"slots that nobody has: of a receipt, in quarantine, barred": {
			in: Input{
				Count: 6, Me: "b", Trust: assignment.Clean, FenceAfter: time.Minute,
				State: assignment.State{
					Slots: slots{0: "a", 7: "z"}, FenceAfter: time.Minute,
					Quarantine: assignment.Quarantine{{From: 1, To: 2, Epoch: 5}, {From: 3, To: 3, Epoch: 6}, {From: 5, To: 9, Epoch: 7}},
				},
				Served: map[int64]bool{6: true},
				Pods: []Pod{
					pod("a", 9, holds(0), minute), pod("b", 9, gaveUp), pod("l", 9, holds(2), minute, otherRevision), pod("z", 9, holds(7), minute, otherRevision),
					pod("y", 9, otherRevision, holds(4), minute), pod("x", 9, otherRevision, holds(4), minute), pod("v", 9, otherRevision), pod("u", 9, otherRevision),
				},
			},
			want: Decision{Waiting: 1, Live: 8, Barred: 1, Quarantined: 2, Scarce: true, FenceAfter: time.Minute},
			next: slots{0: "a", 7: "z"},
		},
		"a receipt for a slot that its pod does not get strands it": {
			in: Input{
				Count: 2, Me: "b", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}}, Pods: []Pod{pod("a", 9, holds(0)), pod("b", 9, holds(0))},
			},
			want: Decision{Live: 2, Stranded: true},
		},
		"one that gave up is not stranded": {
			in: Input{
				Count: 1, Me: "b", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}}, Pods: []Pod{pod("a", 9, holds(0)), pod("b", 9, gaveUp), pod("c", 9, otherRevision)},
			},
			want: Decision{Live: 3, Waiting: 1, Scarce: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			in.Now = t0
			got := decide(in)
			next := got.Next
			got.Next, got.HandOver = nil, HandOver{}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("the plan tells %+v, want %+v", got, tc.want)
			}
			switch {
			case (next == nil) != (tc.next == nil):
				t.Errorf("the plan writes %v, want %v", next, tc.next)
			case next != nil && !reflect.DeepEqual(next.Slots, tc.next):
				t.Errorf("the plan writes %v, want %v", next.Slots, tc.next)
			case next != nil && !reflect.DeepEqual(next.UIDs, uidsOf(tc.next)):
				t.Errorf("the plan writes the UIDs %v of %v", next.UIDs, tc.next)
			}
		})
	}
}

func uidsOf(s slots) slots {
	uids := slots{}
	for id, name := range s {
		uids[id] = assignment.ShortUID("uid-" + name)
	}
	return uids
}
