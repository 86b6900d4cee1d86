package checks

import (
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// The partitions of a history fit an order only if nobody works on one beside another, and if tokens rise.
func TestWorkOnAPartitionHasAnOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		second  []int
		token   int64
		promise string
	}{
		"another one, later":            {[]int{2, 3}, 6, ""},
		"with the token of the first":   {[]int{2, 3}, 5, linear},
		"while the first works on both": {[]int{1, 2}, 6, linear},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.work(a, 0, 0, 1, 2)
				s.work(a, 0, 0, 1)
				b.WorkOn(map[int]int64{tc.second[0]: tc.token, tc.second[1]: tc.token})
				s.act(b, 1, tc.token)
				s.judge.Decide()
				if s.disordered() != (tc.promise == linear) {
					t.Errorf("violations: %v", s.judge.Violations())
				}
			})
		})
	}
}

// What a write takes from the id of a process that works on it must have stopped, except in strict mode, where a quarantine follows.
func TestAWriteThatTakesWorkAwayIsAnOperation(t *testing.T) {
	for name, tc := range map[string]struct {
		worksOn    []int
		fenceAfter time.Duration
		found      bool
	}{
		"the work goes on":                 {[]int{0, 1, 2, 3}, 0, true},
		"the work has stopped":             {[]int{0, 1, 3}, 0, false},
		"the work goes on, in strict mode": {[]int{0, 1, 2, 3}, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := divided()
			p.FenceAfter = tc.fenceAfter
			staged(t, p, func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.row(t, `{"0":"0-3","1":""}`, 5, a, b)
				s.work(a, 0, tc.worksOn...)
				s.row(t, `{"0":"0-1,3","1":"2"}`, 6, a, b)
				found := slices.ContainsFunc(s.judge.parts.recorder.operations, func(o porcupine.Operation) bool {
					i, _ := o.Input.(input)
					return i.deed == swept && i.id == 2 && i.pod == "a/"+a.UID
				})
				if found != tc.found {
					t.Errorf("operations: %v", s.judge.parts.recorder.operations)
				}
			})
		})
	}
}

// wasSwept reports whether an operation is a write that took work away.
func wasSwept(o porcupine.Operation) bool {
	i, _ := o.Input.(input)
	return i.deed == swept
}

// disordered reports whether the operations of a history have no order.
func (s stage) disordered() bool {
	return slices.ContainsFunc(s.judge.Violations(), func(v Violation) bool { return v.Promise == linear })
}
