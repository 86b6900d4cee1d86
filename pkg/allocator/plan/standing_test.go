package plan

import (
	"maps"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

func TestMadeRoom(t *testing.T) {
	n := pod("n", 1, failed(1))
	for name, tc := range map[string]struct {
		pods []Pod
		want bool
	}{
		"nobody gave a slot up":                  {[]Pod{n, pod("a", 9, otherRevision)}, false},
		"a pod of another revision did":          {[]Pod{n, pod("a", 9, otherRevision, gaveUp)}, true},
		"it did, and siblings wait that did not": {[]Pod{n, pod("m", 1), pod("a", 9, otherRevision, gaveUp)}, true},
		"a sibling did":                          {[]Pod{n, pod("a", 9, gaveUp)}, false},
		"it failed, too":                         {[]Pod{n, pod("a", 9, otherRevision, gaveUp, failed(1))}, false},
		"I do not live":                          {[]Pod{pod("a", 9, otherRevision, gaveUp)}, false},
	} {
		if got := MadeRoom(tc.pods, "n"); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Live pods outnumber the count, and slot 1 is free: a pod that gave up has it if no other pod could want it.
func TestWhoCouldWantAFreeSlot(t *testing.T) {
	leaves := pod("t", 9, terminating)
	for name, tc := range map[string]struct {
		pods []Pod
		got  bool
	}{
		"not one that is being deleted":                        {[]Pod{pod("a", 9, holds(0))}, true},
		"not one with an entry that has not taken it yet":      {[]Pod{pod("a", 9)}, true},
		"not one that was relabelled":                          {[]Pod{pod("a", 9, holds(0)), pod("r", 1, relabelled)}, true},
		"not two that lock one slot, and get no other":         {[]Pod{pod("a", 9, holds(0)), pod("x", 9, holds(5)), pod("y", 9, holds(5))}, true},
		"a pod that waits":                                     {[]Pod{pod("a", 9, holds(0)), pod("w", 1, otherRevision)}, false},
		"a pod of another revision that gave its slot up, too": {[]Pod{pod("a", 9, holds(0)), pod("w", 1, otherRevision, gaveUp)}, false},
	} {
		in := Input{
			Count: 2, Me: "d", Trust: assignment.Clean, Now: t0, State: assignment.State{Slots: slots{0: "a"}},
			Pods: append([]Pod{pod("d", 9, gaveUp), leaves}, tc.pods...),
		}
		if id, got := after(in, decide(in)).Slots.Of("d"); got != tc.got || (got && id != 1) {
			t.Errorf("%s: it has slot %d, %t", name, id, got)
		}
	}
}

// Where slots are scarce an older sibling that may never start gets none.
func TestWhatIsScarce(t *testing.T) {
	stuck, n := pod("stuck", 9), pod("n", 1)
	for name, tc := range map[string]struct {
		taken slots
		more  []Pod
		want  slots
	}{
		"two slots for two":                         {nil, nil, slots{0: "stuck", 1: "n"}},
		"one of them has a holder":                  {slots{0: "x"}, []Pod{pod("x", 9, holds(0))}, slots{0: "x", 1: "n"}},
		"a holder above the count takes no room":    {slots{2: "x"}, []Pod{pod("x", 9, holds(2))}, slots{0: "stuck", 1: "n", 2: "x"}},
		"one is locked by two":                      {nil, []Pod{pod("x", 9, holds(0), relabelled), pod("y", 9, holds(0), relabelled)}, slots{1: "n"}},
		"a lock above the count takes no room":      {nil, []Pod{pod("x", 9, holds(2), relabelled), pod("y", 9, holds(2), relabelled)}, slots{0: "stuck", 1: "n"}},
		"of those that run the planner goes before": {slots{0: "x"}, []Pod{pod("x", 9, holds(0)), pod("old", 9, waits)}, slots{0: "x", 1: "n"}},
	} {
		for _, me := range []Pod{n, pod("n", 1, waits)} {
			in := Input{Count: 2, Me: "n", Trust: assignment.Clean, Now: t0, State: assignment.State{Slots: tc.taken}, Pods: append([]Pod{stuck, me}, tc.more...)}
			if got := after(in, decide(in)).Slots; !maps.Equal(got, tc.want) {
				t.Errorf("%s: %v, want %v", name, got, tc.want)
			}
		}
	}
}

// Who must not have a slot that a sibling failed with is counted once, also when slots are asked for.
func TestEachWaiterCountsOnce(t *testing.T) {
	in := Input{
		Count: 3, Me: "m", Trust: assignment.Clean, Now: t0, Rollout: current(0, 0), State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "o"}},
		Pods: []Pod{old("a", 0), old("b", 1), old("o", 2), pod("c", 9, otherRevision, gaveUp), pod("n", 1, gaveUp, failed(1)), pod("m", 1, waits)},
	}
	if d := decide(in); d.Waiting != 2 || len(d.HandOver.Asked) != 1 {
		t.Errorf("%d wait, want n and m, and m asks for one: %+v", d.Waiting, d.HandOver)
	}
}

// In a quarantine that is over, as it stands in an untracked map, the slots between those with a holder are free.
func TestAQuarantineThatIsOverIsNotPassedOver(t *testing.T) {
	in := Input{
		Count: 3, Me: "n", Trust: assignment.Untracked, Now: t0, FenceAfter: time.Minute, Served: map[int64]bool{7: true},
		State: assignment.State{Slots: slots{0: "a"}, FenceAfter: time.Minute, Quarantine: assignment.Quarantine{{From: 0, To: assignment.MaxID, Epoch: 7}}},
		Pods:  []Pod{pod("a", 9, holds(0)), pod("n", 1)},
	}
	if id, ok := after(in, decide(in)).Slots.Of("n"); !ok || id != 1 {
		t.Errorf("it has slot %d, %t, want 1", id, ok)
	}
}

func TestAnOrdinalWaitsForItsQuarantine(t *testing.T) {
	in := Input{
		Count: 3, Me: "w-1", Trust: assignment.Clean, Now: t0, FenceAfter: time.Minute,
		State: assignment.State{Slots: slots{}, Epoch: 7, FenceAfter: time.Minute, Quarantine: assignment.Quarantine{{From: 1, To: 1, Epoch: 7}}},
		Pods:  []Pod{pod("w-1", 1, ordinal(1))},
	}
	d := decide(in)
	if _, ok := after(in, d).Slots.Of("w-1"); ok || d.Waiting != 1 {
		t.Errorf("it has another slot, although its own comes free by itself: %+v", d.Next)
	}
}

func TestASuccessorDoesNotSpeakForThePodWhoseNameItHas(t *testing.T) {
	in := Input{
		Count: 2, Me: "n", Trust: assignment.Clean, Now: t0, FenceAfter: time.Minute,
		State: assignment.State{Slots: slots{0: "w"}, UIDs: slots{0: "older"}, Epoch: 7, FenceAfter: time.Minute},
		Pods:  []Pod{pod("w", 1, gives(0)), pod("n", 1)},
	}
	d := decide(in)
	if _, quarantined := after(in, d).Quarantine.Since(0); !quarantined || len(d.Freed) != 1 || d.Freed[0].Cause != CauseReplaced {
		t.Errorf("its predecessor may still act, but: %+v, %+v", d.Freed, d.Next)
	}
}

func TestHowAskingWent(t *testing.T) {
	asked := HandOver{Asked: []Change{{ID: 2, Pod: "n"}}, Able: 2, UnderWay: 1, Limit: 1}
	if !asked.AskedFor("n") || asked.AskedFor("m") || (HandOver{}).AskedFor("n") {
		t.Error("a slot was asked for another pod than n, or not for n")
	}
	for name, tc := range map[string]struct {
		h    HandOver
		full bool
	}{
		"the limit is reached and a slot is left": {asked, true},
		"more than the limit":                     {HandOver{Able: 1, UnderWay: 2, Limit: 1}, true},
		"no slot is left":                         {HandOver{Asked: asked.Asked, Able: 1, UnderWay: 1, Limit: 1}, false},
		"the limit is not reached":                {HandOver{Able: 1, UnderWay: 0, Limit: 1}, false},
	} {
		if tc.h.Full() != tc.full {
			t.Errorf("%s: full is %t", name, !tc.full)
		}
	}
}

func TestASweepWithoutStrictModePutsNothingIntoQuarantine(t *testing.T) {
	for _, in := range []Input{{Trust: assignment.Clean}, {Trust: assignment.Untracked}} {
		in.Count, in.Now, in.State = 2, t0, assignment.State{Slots: slots{0: "gone", 1: "a"}, Epoch: 7}
		in.Pods = []Pod{pod("a", 9, holds(1))}
		if got := after(in, decide(in)); len(got.Quarantine) > 0 || !maps.Equal(got.Slots, slots{1: "a"}) {
			t.Errorf("it writes %+v", got)
		}
	}
}
