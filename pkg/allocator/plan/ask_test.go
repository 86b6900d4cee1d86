package plan

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

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

// These are methods of what a plan tells, and no plan.
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
