package model

import (
	"strings"
	"testing"
)

func TestNoTwoAreAtWorkOnOneThing(t *testing.T) {
	for name, b := range map[string]budget{
		"two pods, one slot":        {pods: 2, slots: 1, writes: 6, crashes: 1, unanswered: 1, outlives: true, progress: true},
		"a pod is replaced":         {pods: 2, slots: 1, writes: 5, crashes: 1, unanswered: 1, replaced: 1, outlives: true, progress: true},
		"two slots":                 {pods: 2, slots: 2, writes: 4, crashes: 1, unanswered: 1, outlives: true},
		"three pods":                {pods: 3, slots: 1, writes: 3, crashes: 1, unanswered: 1, outlives: true},
		"two slots and a partition": {pods: 2, slots: 2, parts: 1, writes: 3, crashes: 1, unanswered: 1, outlives: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := explore(b)
			if r.two != nil {
				t.Errorf("two are at work on one thing after\n%s", strings.Join(r.two, "\n"))
			}
			if r.stuck > 0 {
				t.Errorf("in %d of %d states the slots cannot come to be held any more", r.stuck, r.states)
			}
			t.Logf("%d states", r.states)
		})
	}
}

func TestEachStepThatIsLeftOutIsMissed(t *testing.T) {
	for _, without := range []step{noList, noRenewal, sameBytes, noTest, noRead, fastGive} {
		t.Run(string(without), func(t *testing.T) {
			r := explore(budget{pods: 2, slots: 1, writes: 6, crashes: 1, unanswered: 1, outlives: true, without: without})
			if r.two == nil {
				t.Fatalf("nobody noticed in %d states", r.states)
			}
			t.Logf("%d states\n%s", r.states, strings.Join(r.two, "\n"))
		})
	}
}
