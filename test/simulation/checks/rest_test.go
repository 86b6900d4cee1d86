package checks

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// user has the user write an annotation of the owner.
func (s stage) user(key, value string) {
	s.ChangeOwner(server.Writer{Manager: "kubectl"}, func(o object.Object) { object.SetText(o, "annotations", key, value) })
}

// locks has a process of the owner say by its receipt that it has the id and works on the partitions.
func (s stage) locks(p *world.Process, id int, on ...int) {
	s.receipt(p, assignment.Receipt{ID: id}, on...)
}

// receipt has a process of the owner write a receipt that locks the partitions.
func (s stage) receipt(p *world.Process, r assignment.Receipt, on ...int) {
	owner := object.UID(s.Owner().Object)
	s.Serving = p
	defer func() { s.Serving = nil }()
	s.Server.Change(object.Pods, p.Pod, server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
		set := placement.Of(on...)
		r.UID, r.Owner, r.Epoch, r.Partitions = p.UID, "ReplicaSet/"+world.OwnerName, 5, &set
		meta := object.Need(o, object.Metadata)
		maps.Copy(object.Need(meta, "annotations"), object.Object{assignment.ReceiptKey: r.Encode()})
		meta["ownerReferences"] = []any{object.Object{"controller": true, "uid": owner}}
	})
}

func TestWhatIsMissingOfTheDivisionAtRest(t *testing.T) {
	for name, tc := range map[string]struct {
		row    string
		a, b   []int
		change func(s stage)
		want   string
	}{
		"nothing":                      {row: halves, a: []int{0, 1}, b: []int{2, 3}},
		"nobody owns one":              {row: `{"0":"0-1","1":"2"}`, a: []int{0, 1}, b: []int{2}, want: "nobody works on partition 3 of 4"},
		"nobody works on one":          {row: halves, a: []int{0, 1}, b: []int{2}, want: "nobody works on partition 3 of 4"},
		"a wrong id works on one":      {row: halves, a: []int{0, 1, 2}, b: []int{3}, want: "a#1 works on partition 2, which its id does not own"},
		"one is not at its target":     {row: `{"0":"0-2","1":"3"}`, a: []int{0, 1, 2}, b: []int{3}, want: "own the partitions instead of"},
		"an id is no member":           {row: `{"0":"0-3"}`, a: []int{0, 1, 2, 3}, want: "id 1 is no member"},
		"the user's number":            {row: halves, a: []int{0, 1}, b: []int{2, 3}, change: func(s stage) { s.user(assignment.PartitionCountKey, "8") }, want: "are in force instead of 8"},
		"the seal, which is the row's": {row: halves, a: []int{0, 1}, b: []int{2, 3}, change: func(s stage) { s.user(assignment.PartitionSealKey, "") }, want: "nobody knows who owns the partitions"},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.row(t, tc.row, 5, a, b)
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

// A restore may leave a partition with nobody if two pods lock it, because the planner cannot know whose it is. What one pod alone locks and
// works on it must leave with that pod's id.
func TestARestoreThatTakesWhatOnePodAloneLocksIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		lock    func(s stage, a, b *world.Process)
		promise string
	}{
		"it alone locks it": {func(s stage, a, b *world.Process) {
			s.locks(a, 0, 0, 1)
			s.locks(b, 1, 2, 3)
		}, exclusion},
		"another one locks it, too": {func(s stage, a, b *world.Process) {
			s.locks(a, 0, 0, 1)
			s.locks(b, 1, 1, 2, 3)
		}, ""},
		"another one locked it, and a planner may have seen that": {func(s stage, a, b *world.Process) {
			s.locks(a, 0, 0, 1)
			s.locks(b, 1, 1, 2, 3)
			s.locks(b, 1, 2, 3)
		}, ""},
		"another one locked it long ago": {func(s stage, a, b *world.Process) {
			s.locks(a, 0, 0, 1)
			s.locks(b, 1, 1, 2, 3)
			s.locks(b, 1, 2, 3)
			s.judge.parts.tied[1] -= time.Hour
		}, exclusion},
		"another one locked it before it did": {func(s stage, a, b *world.Process) {
			s.locks(b, 1, 1, 2, 3)
			s.locks(b, 1)
			s.locks(a, 0, 0, 1)
		}, exclusion},
		"it does not lock it":   {func(s stage, a, _ *world.Process) { s.locks(a, 0, 0) }, ""},
		"it locks another slot": {func(s stage, a, _ *world.Process) { s.locks(a, 1, 0, 1) }, ""},
		"it is out of the workload": {func(s stage, a, _ *world.Process) {
			s.locks(a, 0, 0, 1)
			s.Relabel(a.Pod)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.row(t, halves, 5, a, b)
				tc.lock(s, a, b)
				s.work(a, 0, 0, 1)
				s.work(b, 1, 2, 3)
				s.user(assignment.PartitionSealKey, "")
				s.row(t, `{"0":"0","1":"2-3"}`, 6, a, b)
				s.expect(t, tc.promise)
			})
		})
	}
}

// Somebody removed the receipt by which a pod yielded a partition, and its next process took it again: a late write may leave it with nobody.
func TestWhatAPodLocksAgainMayBecomeNobodys(t *testing.T) {
	for name, tc := range map[string]struct {
		removed, locked bool
		row             string
		promise         string
	}{
		"it becomes nobody's":                    {true, true, `{"0":"0","1":"2-3"}`, ""},
		"another id gets it":                     {true, true, `{"0":"0","1":"1-3"}`, exclusion},
		"it is not locked":                       {true, false, `{"0":"0","1":"2-3"}`, exclusion},
		"the pod itself said no more of a yield": {false, true, `{"0":"0","1":"2-3"}`, exclusion},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.row(t, halves, 5, a, b)
				s.receipt(a, assignment.Receipt{ID: 0, Yields: placement.Of(1)}, 0)
				if tc.removed {
					s.Server.Change(object.Pods, a.Pod, server.Writer{Manager: "kubectl"}, func(o object.Object) {
						object.SetText(o, "annotations", assignment.ReceiptKey, "")
					})
				}
				on := []int{0}
				if tc.locked {
					on = append(on, 1)
				}
				s.locks(a, 0, on...)
				s.work(a, 0, 0, 1)
				s.row(t, tc.row, 6, a, b)
				s.expect(t, tc.promise)
				if excused := tc.promise == ""; excused != !slices.ContainsFunc(s.judge.parts.recorder.operations, wasSwept) {
					t.Errorf("operations: %v", s.judge.parts.recorder.operations)
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
					s.row(t, halves, 5, a, b)
					s.judge.Look()
				})
				s.then(func() {
					a.GoOn()
					if tc.late {
						s.follow(t, a)
					}
					a.Deliver(s.Now()+tc.news, func() {}, func() {})
					s.row(t, `{"0":"0-3"}`, 6, a)
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
