package plan

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

func handsOver(p *Pod) { p.Receipt.HandsOver = true }

func leavingUntil(deadline time.Time) func(*Pod) {
	return func(p *Pod) { p.Terminating, p.Deadline = true, deadline }
}

func current(maxUnavailable, available int) Rollout {
	return Rollout{Current: true, MaxUnavailable: maxUnavailable, Available: available}
}

// old returns a pod of the older revision that holds a slot and hands it over.
func old(name string, id int, more ...func(*Pod)) Pod {
	return pod(name, 9, append([]func(*Pod){otherRevision, holds(id), handsOver}, more...)...)
}

func TestAsk(t *testing.T) {
	three := assignment.State{Slots: slots{0: "a", 1: "b", 2: "c"}}
	for name, tc := range map[string]struct {
		in   Input
		want slots // the requests that stand then
	}{
		"a waiter of the current revision asks for the highest slot": {
			in:   Input{Count: 3, State: three, Rollout: current(0, 0), Pods: []Pod{old("a", 0), old("b", 1), old("c", 2), pod("n", 1)}},
			want: slots{2: "n"},
		},
		"of an older revision it does not": {
			in: Input{Count: 3, State: three, Pods: []Pod{old("a", 0), old("b", 1), old("c", 2), pod("n", 1)}},
		},
		"nor when it is being deleted, for the pod that follows it": {
			in: Input{Count: 3, State: three, Rollout: current(0, 0), Pods: []Pod{old("a", 0), old("b", 1), old("c", 2), pod("n", 1, terminating), pod("m", 2)}},
		},
		"it asks only whose receipt says handsOver": {
			in:   Input{Count: 3, State: three, Rollout: current(0, 0), Pods: []Pod{old("a", 0), pod("b", 9, otherRevision, holds(1)), pod("c", 9, otherRevision), pod("n", 1)}},
			want: slots{0: "n"},
		},
		"not a Terminating pod, whose slot comes free by itself": {
			in:   Input{Count: 3, State: three, Rollout: current(0, 0), Pods: []Pod{old("a", 0), old("b", 1), old("c", 2, terminating), pod("n", 1)}},
			want: slots{1: "n"},
		},
		"while a slot comes free by itself, no other pod has to stop its work": {
			in: Input{Count: 3, State: three, Rollout: current(0, 0), Pods: []Pod{old("a", 0), old("b", 1), old("c", 2, leavingUntil(t0.Add(time.Second))), pod("n", 1)}},
		},
		"beyond that as many as may be unavailable": {
			in:   Input{Count: 3, State: three, Rollout: current(2, 0), Pods: []Pod{old("a", 0), old("b", 1), old("c", 2, leavingUntil(t0.Add(time.Second))), pod("n", 1)}},
			want: slots{1: "n"},
		},
		"a pod that outlives its grace period keeps nobody from asking": {
			in:   Input{Count: 3, State: three, Rollout: current(0, 0), Pods: []Pod{old("a", 0), old("b", 1), old("c", 2, leavingUntil(t0)), pod("n", 1)}},
			want: slots{1: "n"},
		},
		"not a pod that was relabelled, which keeps its slot": {
			in:   Input{Count: 2, State: assignment.State{Slots: slots{0: "a", 1: "b"}}, Rollout: current(0, 0), Pods: []Pod{old("a", 0), old("b", 1, relabelled), pod("n", 1)}},
			want: slots{0: "n"},
		},
		"not a sibling": {
			in: Input{Count: 1, State: assignment.State{Slots: slots{0: "a"}}, Rollout: current(0, 1), Pods: []Pod{pod("a", 9, holds(0), handsOver), pod("n", 1)}},
		},
		"many wait, one hand-over at a time: for who asks, whose program runs": {
			in:   Input{Count: 3, State: three, Rollout: current(0, 0), Pods: []Pod{old("a", 0), old("b", 1), old("c", 2), pod("n", 1), pod("m", 2), pod("o", 3)}},
			want: slots{2: "n"},
		},
		"as many as may be unavailable, in one write": {
			in:   Input{Count: 3, State: three, Rollout: current(2, 0), Pods: []Pod{old("a", 0), old("b", 1), old("c", 2), pod("n", 1), pod("m", 2, waits), pod("o", 3, waits)}},
			want: slots{2: "n", 1: "o"},
		},
		"no pod's work is stopped for a sibling that may never start": {
			in:   Input{Count: 3, State: three, Rollout: current(2, 0), Pods: []Pod{old("a", 0), old("b", 1), old("c", 2), pod("n", 1), pod("m", 2, waits), pod("o", 3)}},
			want: slots{2: "n", 1: "m"},
		},
		"a sibling that has a slot and is not available yet is a hand-over under way": {
			in: Input{
				Count: 3, State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "m"}}, Rollout: current(1, 0),
				Pods: []Pod{old("a", 0), old("b", 1), pod("m", 2, holds(2)), pod("n", 1)},
			},
		},
		"one that has not shown life took its slot from nobody, and keeps nobody from asking": {
			in: Input{
				Count: 3, State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "m"}}, Rollout: current(1, 0),
				Pods: []Pod{old("a", 0), old("b", 1), pod("m", 2), pod("n", 1)},
			},
			want: slots{1: "n"},
		},
		"one that was given a slot and has not taken it yet is a hand-over under way": {
			in: Input{
				Count: 3, State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "m"}}, Rollout: current(1, 0),
				Pods: []Pod{old("a", 0), old("b", 1), pod("m", 2, waits), pod("n", 1)},
			},
		},
		"when it is available the next one is asked": {
			in: Input{
				Count: 3, State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "m"}}, Rollout: current(1, 1),
				Pods: []Pod{old("a", 0), old("b", 1), pod("m", 2, holds(2)), pod("n", 1)},
			},
			want: slots{1: "n"},
		},
		"a pod that gave up asks when a rollback made its revision the current one": {
			in: Input{
				Count: 1, State: assignment.State{Slots: slots{0: "b"}}, Rollout: current(0, 0),
				Pods: []Pod{old("b", 0), pod("n", 5, gaveUp)},
			},
			want: slots{0: "n"},
		},
		"requests of a revision that is not current any more are dropped": {
			in: Input{
				Count: 2, State: assignment.State{Slots: slots{0: "a", 1: "b"}, Handover: slots{1: "x"}}, Rollout: current(0, 0),
				Pods: []Pod{old("a", 0), old("b", 1), pod("x", 2, otherRevision), pod("n", 1)},
			},
			want: slots{1: "n"},
		},
		"a relabelled pod asks for nothing: another one runs in its place": {
			in: Input{Count: 3, State: three, Rollout: current(0, 0), Pods: []Pod{old("a", 0), old("b", 1), old("c", 2), pod("n", 1, relabelled)}},
		},
		"the slot of a request that is met by another one can be asked for": {
			in: Input{
				Count: 5, Rollout: current(2, 0), FenceAfter: time.Minute,
				State: assignment.State{
					Slots: slots{0: "a", 1: "b", 2: "c"}, Handover: slots{2: "x"}, FenceAfter: time.Minute, Quarantine: assignment.Quarantine{{From: 4, To: 4, Epoch: 7}},
				},
				Pods: []Pod{old("a", 0), old("b", 1), old("c", 2), pod("x", 5, waits), pod("n", 1)},
			},
			want: slots{2: "n"},
		},
		"who asks already does not ask again": {
			in: Input{
				Count: 3, State: assignment.State{Slots: slots{0: "a", 1: "b", 2: "c"}, Handover: slots{1: "n"}}, Rollout: current(3, 0),
				Pods: []Pod{old("a", 0), old("b", 1), old("c", 2), pod("n", 1)},
			},
			want: slots{1: "n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			in.Me, in.Trust, in.Now = "n", assignment.Clean, t0
			got := after(in, decide(in)).Handover
			if !maps.Equal(got, tc.want) {
				t.Errorf("requests %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWhoGaveUpMayHaveAFreeSlot(t *testing.T) {
	// Three slots, one free; a broken new pod that never claims keeps the live pods above the count.
	in := Input{
		Count: 3, Trust: assignment.Clean, Me: "d", Now: t0, State: assignment.State{Slots: slots{0: "a", 1: "b"}},
		Pods: []Pod{pod("a", 9, holds(0)), pod("b", 9, holds(1)), pod("d", 9, gaveUp), pod("broken", 1, otherRevision)},
	}
	d := decide(in)
	if d.Next != nil || d.Barred != 1 {
		t.Errorf("the slot is given at once (%v), or nothing says that it is free (%d)", d.Next, d.Barred)
	}
	in.Insist = true
	if id, ok := after(in, decide(in)).Slots.Of("d"); !ok || id != 2 {
		t.Error("the slot stays free although nobody else takes it")
	}
	in.Insist, in.Rollout.Current = false, true
	if _, ok := after(in, decide(in)).Slots.Of("d"); !ok {
		t.Error("a pod of the current revision is kept from a free slot")
	}
}

func TestWhoGaveUpGivesNothingToItsOwnRevision(t *testing.T) {
	in := Input{
		Count: 2, Trust: assignment.Clean, Me: "d", Now: t0, State: assignment.State{Slots: slots{0: "a"}},
		Pods: []Pod{pod("a", 9, holds(0)), pod("d", 9, gaveUp), pod("fresh", 1, waits), pod("new", 1, otherRevision)},
	}
	if d := decide(in); d.Next != nil {
		t.Errorf("a sibling gets the slot that was given up for another revision: %v", d.Next.Slots)
	}
	in.Me = "new"
	if id, ok := after(in, decide(in)).Slots.Of("new"); !ok || id != 1 {
		t.Error("the slot is not given to the other revision")
	}
}

func TestRequestsAreFewAndMeetable(t *testing.T) { property(t, requestsAreFewAndMeetable) }

func requestsAreFewAndMeetable(t rapid.TB, in Input, d Decision) {
	t.Helper()
	next := after(in, d)
	for _, a := range d.HandOver.Asked {
		requester, holder := podNamed(in, a.Pod), podNamed(in, next.Slots[a.ID])
		_, has := next.Slots.Of(a.Pod)
		switch {
		case in.Trust != assignment.Clean || !in.Rollout.Current || podNamed(in, in.Me).Terminating:
			t.Fatalf("%s asks", a.Pod)
		case has || requester.Terminating || requester.Controller != podNamed(in, in.Me).Controller:
			t.Fatalf("%+v asks for slot %d", requester, a.ID)
		case holder.Controller == requester.Controller || !holder.Receipt.HandsOver || a.ID >= in.Count:
			t.Fatalf("%+v is asked for slot %d", holder, a.ID)
		}
	}
	if len(d.HandOver.Asked) > 0 && d.HandOver.UnderWay > max(1, in.Rollout.MaxUnavailable) {
		t.Fatalf("%d hand-overs under way, %d may be", d.HandOver.UnderWay, in.Rollout.MaxUnavailable)
	}
	asking := map[string]bool{}
	for id, name := range next.Handover {
		if _, has := next.Slots.Of(name); has || asking[name] {
			t.Fatalf("%s asks for slot %d and has or asks for another one: %v", name, id, next)
		}
		asking[name] = true
	}
}

func TestAQuarantinedSlotIsGivenToNobody(t *testing.T) { property(t, aQuarantinedSlotIsGivenToNobody) }

func aQuarantinedSlotIsGivenToNobody(t rapid.TB, in Input, d Decision) {
	t.Helper()
	for _, given := range d.Given {
		if p := podNamed(in, given.Pod); p.locks() && p.Receipt.ID == given.ID {
			continue // restored
		}
		if epoch, ok := in.State.Quarantine.Since(given.ID); ok && (in.Trust.Believed()) && !in.Served[epoch] && d.FenceAfter > 0 {
			t.Fatalf("slot %d is given to %s out of quarantine %d", given.ID, given.Pod, epoch)
		}
		if d.FenceAfter > 0 && !in.Trust.Believed() {
			t.Fatalf("slot %d is given to %s although nobody knows who had it", given.ID, given.Pod)
		}
		for _, f := range d.Freed {
			if d.FenceAfter > 0 && f.ID == given.ID && f.Cause == CauseDead && !in.Ended[f.ID] {
				t.Fatalf("slot %d of %s, which vanished, is given to %s", f.ID, f.Pod, given.Pod)
			}
		}
	}
}

func TestStrictModeIsWrittenDown(t *testing.T) { property(t, strictModeIsWrittenDown) }

func strictModeIsWrittenDown(t rapid.TB, in Input, d Decision) {
	t.Helper()
	next := after(in, d)
	for id := range next.Slots {
		if _, ok := next.Quarantine.Since(id); ok {
			t.Fatalf("slot %d has a holder and is in quarantine", id)
		}
	}
	for id, name := range next.Slots {
		if p := podNamed(in, name); d.Next != nil && in.Trust == assignment.Clean && in.State.Slots[id] == name && !p.locks() && next.FenceAfter < in.State.FenceAfter {
			t.Fatalf("fence-after fell from %s to %s, and what %s in slot %d needs is not known", in.State.FenceAfter, next.FenceAfter, name, id)
		}
	}
	if d.Next != nil && (in.Trust.Believed()) && len(next.Quarantine) > 0 && next.FenceAfter < in.State.FenceAfter {
		t.Fatalf("fence-after fell from %s to %s during a quarantine", in.State.FenceAfter, next.FenceAfter)
	}
	if _, has := next.Slots.Of(in.Me); d.Next != nil && has && next.FenceAfter < in.FenceAfter {
		t.Fatalf("the owner says fence-after %s, me %s", next.FenceAfter, in.FenceAfter)
	}
}

// genStrict draws what strict mode adds.
func genStrict(t *rapid.T, in *Input) {
	fences := rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Second, 30 * time.Second})
	in.FenceAfter, in.State.FenceAfter = fences.Draw(t, "fence"), fences.Draw(t, "ownersFence")
	if in.Trust != assignment.Clean && rapid.Bool().Draw(t, "untracked") {
		in.Trust = assignment.Untracked
	}
	in.Served, in.Ended = map[int64]bool{1: rapid.Bool().Draw(t, "served1"), 2: rapid.Bool().Draw(t, "served2")}, map[int]bool{}
	for id := range 12 {
		if _, taken := in.State.Slots[id]; !taken && rapid.IntRange(0, 3).Draw(t, "quarantined") == 0 {
			in.State.Quarantine = in.State.Quarantine.With(id, id, rapid.Int64Range(1, 2).Draw(t, "since"))
		}
		in.Ended[id] = rapid.Bool().Draw(t, "ended")
	}
}
