package plan

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// The requests that stand after a plan of n, a waiter of the current revision, in a clean map.
func TestRequests(t *testing.T) {
	three := slots{0: "a", 1: "b", 2: "c"}
	olds := []Pod{old("a", 0), old("b", 1), old("c", 2)}
	with := func(pods ...Pod) []Pod { return append(append([]Pod{}, olds...), pods...) }
	for name, tc := range map[string]struct {
		in   Input
		want slots
	}{
		"a request for a slot beyond the count is dropped": {
			in:   Input{Count: 3, State: assignment.State{Slots: three, Handover: slots{3: "n"}}, Rollout: current(0, 0), Pods: with(pod("n", 1))},
			want: slots{2: "n"},
		},
		"so is that of a pod that is being deleted": {
			in: Input{
				Count: 3, State: assignment.State{Slots: three, Handover: slots{1: "x"}}, Rollout: current(0, 0),
				Pods: with(pod("n", 1), pod("x", 5, terminating)),
			},
			want: slots{2: "n"},
		},
		"and that of a pod that is gone": {
			in:   Input{Count: 3, State: assignment.State{Slots: three, Handover: slots{1: "x"}}, Rollout: current(0, 0), Pods: with(pod("n", 1))},
			want: slots{2: "n"},
		},
		"who asks for one slot and gets another does not ask any more": {
			in: Input{Count: 3, State: assignment.State{Slots: slots{0: "a", 1: "b"}, Handover: slots{1: "n"}}, Rollout: current(0, 0), Pods: []Pod{old("a", 0), old("b", 1), pod("n", 1)}},
		},
		"who has a slot asks for nobody": {
			in: Input{
				Count: 3, State: assignment.State{Slots: slots{0: "n", 1: "b", 2: "c"}}, Rollout: current(3, 1),
				Pods: []Pod{pod("n", 1, holds(0)), old("b", 1), old("c", 2), pod("m", 2)},
			},
		},
		"who releases asks for nobody": {
			in: Input{
				Count: 3, Intent: Release, State: assignment.State{Slots: slots{0: "n", 1: "b", 2: "c"}}, Rollout: current(3, 0),
				Pods: []Pod{pod("n", 1, gaveUp), old("b", 1), old("c", 2), pod("m", 2), pod("o", 3)},
			},
		},
		"of two waiters the one that plans asks first": {
			in:   Input{Count: 3, State: assignment.State{Slots: three}, Rollout: current(0, 0), Pods: with(pod("m", 5, waits), pod("n", 1))},
			want: slots{2: "n"},
		},
		"nobody asks twice, although more may be unavailable": {
			in:   Input{Count: 3, State: assignment.State{Slots: three}, Rollout: current(3, 0), Pods: with(pod("m", 5, waits), pod("n", 1))},
			want: slots{2: "n", 1: "m"},
		},
		"who waits for the slot of its ordinal asks for no other": {
			in: Input{Count: 3, State: assignment.State{Slots: three}, Rollout: current(0, 0), Pods: with(pod("n", 1, ordinal(1)))},
		},
		"the holder of a slot beyond the count is not asked": {
			in:   Input{Count: 2, State: assignment.State{Slots: three}, Rollout: current(0, 0), Pods: with(pod("n", 1))},
			want: slots{1: "n"},
		},
		"nor one whose receipt is for another slot": {
			in: Input{
				Count: 3, State: assignment.State{Slots: three}, Rollout: current(0, 0),
				Pods: []Pod{old("a", 0), old("b", 1), old("c", 7), pod("n", 1)},
			},
			want: slots{1: "n"},
		},
		"nor one that was asked by another pod": {
			in: Input{
				Count: 3, State: assignment.State{Slots: three, Handover: slots{2: "m"}}, Rollout: current(2, 0),
				Pods: with(pod("m", 5, waits), pod("n", 1)),
			},
			want: slots{2: "m", 1: "n"},
		},
		"a slot that was asked for and whose pod is leaving counts once": {
			in: Input{
				Count: 3, State: assignment.State{Slots: three, Handover: slots{2: "m"}}, Rollout: current(2, 0),
				Pods: []Pod{old("a", 0), old("b", 1), old("c", 2, leavingUntil(t0.Add(time.Second))), pod("m", 5), pod("n", 1)},
			},
			want: slots{2: "m", 1: "n"},
		},
		"a slot beyond the count that comes free is of use to nobody": {
			in: Input{
				Count: 2, State: assignment.State{Slots: three}, Rollout: current(0, 0),
				Pods: []Pod{old("a", 0), old("b", 1), old("c", 2, leavingUntil(t0.Add(time.Second))), pod("n", 1)},
			},
			want: slots{1: "n"},
		},
		"a sibling that is leaving is no hand-over under way": {
			in: Input{
				Count: 3, State: assignment.State{Slots: three}, Rollout: current(0, 0),
				Pods: []Pod{old("a", 0), old("b", 1), pod("c", 9, holds(2), leavingUntil(t0.Add(time.Second))), pod("n", 1)},
			},
			want: slots{1: "n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			in.Me, in.Trust, in.Now = "n", assignment.Clean, t0
			if got := after(in, decide(in)).Handover; !maps.Equal(got, tc.want) {
				t.Errorf("requests %v, want %v", got, tc.want)
			}
		})
	}
}

// Whose requests they are nobody knows any more, so all are dropped, and none is made before the map is restored.
func TestAMapThatIsNotCleanHasNoRequests(t *testing.T) {
	in := Input{
		Count: 2, Me: "n", Now: t0, State: assignment.State{Slots: slots{0: "a", 1: "b"}, Handover: slots{1: "n"}}, Rollout: current(2, 0),
		Pods: []Pod{old("a", 0), old("b", 1), pod("n", 1), pod("m", 2)},
	}
	if got := decide(in).Next; got == nil || len(got.Handover) > 0 {
		t.Errorf("the next state is %+v, want one without requests", got)
	}
}

// A sweep's planner is no pod, whatever is said about a rollout.
func TestASweepKeepsRequests(t *testing.T) {
	in := Input{
		Count: 2, Trust: assignment.Clean, Now: t0, State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "dead"}, Handover: slots{1: "n"}}, Rollout: current(2, 0),
		Pods: []Pod{old("a", 0), old("b", 1), pod("n", 1)},
	}
	if got, want := decide(in).Next, (slots{1: "n"}); got == nil || !maps.Equal(got.Handover, want) {
		t.Errorf("the next state is %+v, want the requests %v", got, want)
	}
}

func TestWhoHasASlotIsNotServedAgain(t *testing.T) {
	in := Input{
		Count: 3, Trust: assignment.Clean, Me: "n", Now: t0, State: assignment.State{Slots: slots{0: "a", 2: "n"}, Handover: slots{1: "n"}},
		Pods: []Pod{pod("a", 9, holds(0)), pod("n", 1)}, // it has not taken it yet
	}
	if got, want := after(in, decide(in)).Slots, (slots{0: "a", 2: "n"}); !maps.Equal(got, want) {
		t.Errorf("the map is %v, want %v", got, want)
	}
	in.Pods[1] = pod("n", 1, holds(2))
	if got, want := after(in, decide(in)).Slots, (slots{0: "a", 2: "n"}); !maps.Equal(got, want) {
		t.Errorf("the map is %v, want %v", got, want)
	}
}

// What a waiter tells of asking: who hands over, how many may, and what it asked for.
func TestWhatAPlanTellsOfAsking(t *testing.T) {
	in := Input{
		Count: 5, Trust: assignment.Clean, Me: "n", Now: t0, Rollout: current(2, 0),
		State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "c", 3: "d", 4: "e", 5: "f"}},
		Pods: []Pod{
			old("a", 0), old("b", 1), pod("c", 9, otherRevision, holds(2)), pod("d", 9, holds(3), terminating), old("e", 4, relabelled),
			old("f", 5), pod("n", 1), pod("m", 2, waits), pod("o", 3, waits),
		},
	}
	want := HandOver{Asked: []Change{{ID: 1, Pod: "n"}, {ID: 0, Pod: "o"}}, UnderWay: 2, Limit: 2, Older: 3, Able: 2}
	if got := decide(in).HandOver; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	in.Pods = append(in.Pods[:6:6], pod("n", 1, holds(6)))
	in.State.Slots = maps.Clone(in.State.Slots)
	in.State.Slots[6] = "n"
	if got := decide(in).HandOver; !reflect.DeepEqual(got, HandOver{}) {
		t.Errorf("who has a slot tells of asking: %+v", got)
	}
}
