package plan

import (
	"maps"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// failed marks a pod whose program ended by itself soon after each of n takes.
func failed(n int) func(*Pod) {
	return func(p *Pod) {
		if p.Receipt == nil {
			waits(p)
		}
		p.Receipt.Failed = n
	}
}

// Three slots, default strategy: c gave slot 2 up for n, whose program failed.
func brokenRevision(me string, more ...Pod) Input {
	in := Input{
		Count: 3, Trust: assignment.Clean, Me: me, Now: t0, State: assignment.State{Slots: slots{0: "a", 1: "b"}},
		Pods: append([]Pod{old("a", 0), old("b", 1), pod("c", 9, otherRevision, gaveUp), pod("n", 1, gaveUp, failed(1))}, more...),
	}
	if me == "n" {
		in.Rollout = current(0, 0)
	}
	return in
}

func TestWhoGaveASlotUpForAPodThatFailedGetsItBack(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Input
		want slots
	}{
		"the pod that gave it takes it at once":        {brokenRevision("c"), slots{0: "a", 1: "b", 2: "c"}},
		"the pod that failed leaves it":                {brokenRevision("n"), slots{0: "a", 1: "b"}},
		"a new pod that has not failed may try":        {brokenRevision("m", pod("m", 1)), slots{0: "a", 1: "b", 2: "m"}},
		"and the pod that gave it stands back for it":  {brokenRevision("c", pod("m", 1)), slots{0: "a", 1: "b"}},
		"but not for one that is being deleted":        {brokenRevision("c", pod("m", 1, terminating)), slots{0: "a", 1: "b", 2: "c"}},
		"nor for others of its revision that gave up":  {brokenRevision("c", pod("d", 8, otherRevision, gaveUp)), slots{0: "a", 1: "b", 2: "c"}},
		"a pod that gave up and failed is no better":   {brokenRevision("n", pod("c", 9, otherRevision, gaveUp, failed(2))), slots{0: "a", 1: "b", 2: "n"}},
		"one that waits, is deleted and was no better": {brokenRevision("n", pod("c", 9, otherRevision, gaveUp, terminating)), slots{0: "a", 1: "b", 2: "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			if len(in.Pods) == 5 && in.Pods[4].Name == "c" { // in place of the first
				in.Pods = append(in.Pods[:2:2], in.Pods[3:]...)
			}
			if got := after(in, decide(in)).Slots; !maps.Equal(got, tc.want) {
				t.Errorf("slots %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAPodThatFailedTakesAFreeSlotWhereThereAreEnough(t *testing.T) {
	in := brokenRevision("n")
	in.Count = 4
	if id, ok := after(in, decide(in)).Slots.Of("n"); !ok {
		t.Error("it has none")
	} else if id < 2 {
		t.Errorf("it has slot %d", id)
	}
}

func TestASlotIsNotKeptForAPodThatDoesNotTakeIt(t *testing.T) {
	in := brokenRevision("n")
	in.Insist = true
	if _, ok := after(in, decide(in)).Slots.Of("n"); !ok {
		t.Error("the slot stays free for ever if the program of the pod that gave it does not run any more")
	}
}

func TestAPodThatFailedHasNoWorkStoppedBeforeItsTime(t *testing.T) {
	in := brokenRevision("n")
	in.State.Slots = slots{0: "a", 1: "b", 2: "c"}
	in.Pods[2] = old("c", 2)
	in.StandsBack = true
	if d := decide(in); d.Next != nil {
		t.Errorf("it asks at once: %v", d.Next.Handover)
	}
	in.StandsBack = false
	if got, want := after(in, decide(in)).Handover, (slots{2: "n"}); !maps.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
	in.Me = "m"
	in.Pods = append(in.Pods, pod("m", 1))
	in.Rollout.MaxUnavailable = 2
	if got, want := after(in, decide(in)).Handover, (slots{2: "m"}); !maps.Equal(got, want) {
		t.Errorf("a sibling asks for it: requests %v, want %v", got, want)
	}
}

func TestAFailureIsNoPartOfALock(t *testing.T) {
	in := Input{Count: 1, Trust: assignment.Clean, Me: "c", Now: t0, State: assignment.State{Slots: slots{0: "n"}}, Pods: []Pod{pod("n", 1, holds(0), failed(3)), pod("c", 9, otherRevision, gaveUp)}}
	if d := decide(in); d.Next != nil {
		t.Errorf("the slot of a pod that works is taken: %v", d.Next.Slots)
	}
}
