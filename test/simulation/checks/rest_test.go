package checks

import (
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// user has the user write an annotation of the owner.
func (s stage) user(key, value string) {
	s.ChangeOwner(server.Writer{Manager: "kubectl"}, func(o object.Object) { object.SetText(o, "annotations", key, value) })
}

func TestWhatIsMissingOfTheDivisionAtRest(t *testing.T) {
	for name, tc := range map[string]struct {
		row    string
		a, b   []int
		change func(s stage)
		want   string
	}{
		"nothing":                  {row: halves, a: []int{0, 1}, b: []int{2, 3}},
		"no id owns one":           {row: `{"0":"0-1","1":"2"}`, a: []int{0, 1}, b: []int{2}, want: "no pod works on partition 3 of 4"},
		"no pod works on one":      {row: halves, a: []int{0, 1}, b: []int{2}, want: "no pod works on partition 3 of 4"},
		"a wrong id works on one":  {row: halves, a: []int{0, 1, 2}, b: []int{3}, want: "a#1 works on partition 2, which its id does not own"},
		"one is not at its target": {row: `{"0":"0-2","1":"3"}`, a: []int{0, 1, 2}, b: []int{3}, want: "own the partitions instead of"},
		"an id is no member":       {row: `{"0":"0-3"}`, a: []int{0, 1, 2, 3}, want: "id 1 is no member"},
		"the user's number":        {row: halves, a: []int{0, 1}, b: []int{2, 3}, change: func(s stage) { s.user(assignment.PartitionCountKey, "8") }, want: "are in force instead of 8"},
		"the row":                  {row: halves, a: []int{0, 1}, b: []int{2, 3}, change: func(s stage) { s.user(assignment.PartitionOwnersKey, "") }, want: "no row says which id owns which partition"},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.row(t, tc.row, a, b)
				s.work(a, 0, tc.a...)
				s.work(b, 1, tc.b...)
				if tc.change != nil {
					tc.change(s)
				}
				if got := s.judge.partitionsMissing(s.Owner()); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
					t.Errorf("missing: %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// A planner that has not heard for a while may have missed that the id had a holder.
func TestAnIDKeepsItsPartitionsForAWhile(t *testing.T) {
	for name, tc := range map[string]struct {
		deaf    bool          // the planner has no watch
		late    bool          // its watch began when the id had no holder any more
		slept   bool          // it was suspended while the id had one
		news    time.Duration // that is on its way to the planner
		promise string
	}{
		"a planner that hears":            {promise: moves},
		"a planner whose watch is silent": {news: time.Minute},
		"a planner whose watch ended":     {deaf: true},
		"a planner with a new watch":      {deaf: true, late: true},
		"a planner that was suspended":    {slept: true},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.Alone(func() {
					if !tc.deaf {
						s.follow(t, a)
					}
					if tc.slept {
						a.Freeze()
					}
					s.locks(b, 1, 2, 3)
					s.judge.parts.taken[1] = -moment
					s.row(t, halves, a, b)
					s.judge.Look()
				})
				s.then(func() {
					a.GoOn()
					if tc.late {
						s.follow(t, a)
					}
					a.Deliver(s.Now()+tc.news, func() {}, func() {})
					s.row(t, `{"0":"0-3"}`, a)
					s.expect(t, tc.promise)
				})
			})
		})
	}
}

// A watcher that starts again tells the work another token, which looks as if the pod had let go of its id.
func TestNothingIsSettledWhileAWatcherDoesNotRun(t *testing.T) {
	staged(t, profile.Profile{}, func(s stage) {
		a, b := s.Puppet("a"), s.Puppet("b")
		s.act(a, 0, 5)
		s.act(b, 1, 5)
		if got := s.judge.Settled(); strings.Contains(got, "does not run") {
			t.Errorf("both run, and this is missing: %s", got)
		}
		b.Launched = false
		if got := s.judge.Settled(); got != "b#1 does not run beside its work" {
			t.Errorf("missing: %q", got)
		}
	})
}
