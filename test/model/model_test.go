package model

import (
	"flag"
	"strings"
	"testing"
)

// all says that each pod is strict.
var all = [mostPods]bool{true, true, true} //nolint:gochecknoglobals // a constant that Go cannot express

// deep has more and larger worlds explored.
var deep = flag.Bool("deep", false, "explore larger worlds, for minutes") //nolint:gochecknoglobals // a flag

func TestNoTwoAreAtWorkOnOneThing(t *testing.T) {
	second := [mostPods]bool{1: true}
	small := map[string]budget{
		"two pods, one slot":        {pods: 2, slots: 1, writes: 4, crashes: 1, unanswered: 1, outlives: true, progress: true},
		"a pod is replaced":         {pods: 2, slots: 1, writes: 3, crashes: 1, unanswered: 1, replaced: 1, outlives: true},
		"two slots":                 {pods: 2, slots: 2, writes: 3, crashes: 1, unanswered: 1, outlives: true},
		"three pods":                {pods: 3, slots: 1, writes: 2, unanswered: 1, outlives: true},
		"two slots and a partition": {pods: 2, slots: 2, parts: 1, writes: 2, unanswered: 1},
		"two partitions":            {pods: 2, slots: 2, parts: 2, writes: 2},
		"two strict pods":           {pods: 2, slots: 1, writes: 4, cut: 1, strict: all, progress: true},
		"a Lease is let go late":    {pods: 2, slots: 1, writes: 3, unanswered: 1, forced: 1, strict: all},
		"a strict pod is forced":    {pods: 2, slots: 1, writes: 3, cut: 1, forced: 1, strict: all},
		"one is strict":             {pods: 2, slots: 1, writes: 3, crashes: 1, unanswered: 1, cut: 1, strict: [mostPods]bool{true}},
		"a strict pod is overdue":   {pods: 2, slots: 1, writes: 3, cut: 1, overdue: 2, strict: all},
		"a Lease is removed":        {pods: 2, slots: 1, writes: 4, cut: 1, stripped: 1, strict: all},
		"a pod becomes strict":      {pods: 2, slots: 1, writes: 3, crashes: 1, hardened: 1, forced: 1, overdue: 1, outlives: true, strict: second},
	}
	large := map[string]budget{
		"two pods, one slot":        {pods: 2, slots: 1, writes: 6, crashes: 1, unanswered: 1, outlives: true, progress: true},
		"a pod is replaced":         {pods: 2, slots: 1, writes: 5, crashes: 1, unanswered: 1, replaced: 1, outlives: true, progress: true},
		"two slots":                 {pods: 2, slots: 2, writes: 4, crashes: 1, unanswered: 1, outlives: true},
		"three pods":                {pods: 3, slots: 1, writes: 3, unanswered: 1, outlives: true},
		"two slots and a partition": {pods: 2, slots: 2, parts: 1, writes: 3, unanswered: 1},
		"two partitions":            {pods: 2, slots: 2, parts: 2, writes: 2},
		"two strict pods":           {pods: 2, slots: 1, writes: 4, unanswered: 1, cut: 1, strict: all, progress: true},
		"a strict pod is forced":    {pods: 2, slots: 1, writes: 4, cut: 1, forced: 1, strict: all},
		"strict, with a partition":  {pods: 2, slots: 2, parts: 1, writes: 2, cut: 1, forced: 1, strict: all},
		"one is strict":             {pods: 2, slots: 1, writes: 4, crashes: 1, unanswered: 1, cut: 1, strict: [mostPods]bool{true}},
		"a strict pod is overdue":   {pods: 2, slots: 1, writes: 4, cut: 1, overdue: 2, strict: all, progress: true},
		"a Lease is removed":        {pods: 2, slots: 1, writes: 4, unanswered: 1, cut: 1, stripped: 1, strict: all},
		"a pod becomes strict":      {pods: 2, slots: 1, writes: 4, crashes: 1, hardened: 1, cut: 1, forced: 1, overdue: 1, outlives: true, strict: second},
	}
	worlds, all := small, 0
	if *deep {
		worlds = large
	}
	for name, b := range worlds {
		t.Run(name, func(t *testing.T) {
			r := search(b)
			if r.two != nil {
				t.Errorf("two are at work on one thing after\n%s", strings.Join(r.two, "\n"))
			}
			if r.yields != nil {
				t.Errorf("a holder gives way after\n%s", strings.Join(r.yields, "\n"))
			}
			if r.stuck > 0 {
				t.Errorf("in %d of %d states the slots cannot come to be held any more", r.stuck, r.states)
			}
			t.Logf("%d states", r.states)
			all += r.states
		})
	}
	t.Logf("%d states in all", all)
}

// A client that removes the receipt of a live pod breaks what the proof assumes. Then two may be at work until both have heard of it, and not
// for good.
func TestARemovedReceiptHeals(t *testing.T) {
	r := search(budget{pods: 2, slots: 1, writes: 4, unanswered: 1, removed: 1})
	if r.two != nil {
		t.Errorf("two are at work on one thing, and both have heard of all, after\n%s", strings.Join(r.two, "\n"))
	}
	if r.moments == 0 {
		t.Error("a removed receipt does no harm, so nothing of this was explored")
	}
	t.Logf("%d states, in %d of them two are at work until they hear of it", r.states, r.moments)
}

func TestEachStepThatIsLeftOutIsMissed(t *testing.T) {
	base := budget{pods: 2, slots: 1, writes: 6, crashes: 1, unanswered: 1, outlives: true}
	strict := budget{pods: 2, slots: 1, writes: 4, cut: 1, forced: 1, strict: all}
	for without, b := range map[step]budget{
		noList: base, noRenewal: base, sameBytes: base, noTest: base, noRead: base, fastGive: base, noHeld: base, early: base,
		noLease: strict, noRefence: strict, noSurvey: {pods: 2, slots: 2, parts: 1, writes: 3, cut: 1, forced: 1, strict: all},
		noStrict:    {pods: 2, slots: 1, writes: 3, stripped: 1, strict: all},
		noMark:      {pods: 2, slots: 1, writes: 4, crashes: 1, hardened: 1, overdue: 1, outlives: true, strict: [mostPods]bool{1: true}},
		noParts:     {pods: 2, slots: 2, parts: 2, writes: 3},
		noLoosening: {pods: 2, slots: 1, writes: 4, unanswered: 1, forced: 1, strict: all},
	} {
		t.Run(string(without), func(t *testing.T) {
			b.without = without
			r := search(b)
			if r.two == nil && r.yields == nil {
				t.Fatalf("no process noticed in %d states", r.states)
			}
			t.Logf("%d states\n%s", r.states, strings.Join(append(r.two, r.yields...), "\n"))
		})
	}
}
