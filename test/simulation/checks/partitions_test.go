package checks

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// divided is a workload whose two ids are to divide four partitions.
func divided() profile.Profile {
	return profile.Profile{Partitions: 4, Strategy: placement.NameSticky}
}

// halves is a row in which each of the two ids owns half of the partitions.
const halves = `{"0":"0-1","1":"2-3"}`

// row has a process of ours write who owns the four partitions. The ids are those of the pods, in their order.
func (s stage) row(t *testing.T, text string, pods ...*world.Process) {
	t.Helper()
	owners, err := placement.ParseOwners(text, 4)
	if err != nil {
		t.Fatal(err)
	}
	state := assignment.State{Slots: assignment.Slots{}, Row: &assignment.Row{Count: 4, Strategy: placement.NameSticky, Owners: owners}}
	for id, p := range pods {
		if p != nil { // an id without a holder
			state.Slots[id], s.Serving = p.Pod, p
		}
	}
	s.ChangeOwner(server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
		for key, value := range state.Encode() {
			object.SetText(o, "annotations", key, value)
		}
	})
	s.Serving = nil
}

// work has a process act under an id and work on partitions, with a token of its own.
func (s stage) work(p *world.Process, id int, on ...int) {
	token := int64(5 + 10*id)
	parts := map[int]int64{}
	for _, k := range on {
		parts[k] = token
	}
	p.WorkOn(parts)
	s.act(p, id, token)
}

func TestAPartitionOnWhichTwoWorkIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		worksOn  []int
		promises []string
	}{
		"the work continues":   {[]int{0, 1, 2}, []string{exclusion}},
		"the work has stopped": {[]int{0, 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.work(a, 0, 0, 1, 2)
				s.work(a, 0, tc.worksOn...)
				s.work(b, 1, 2, 3)
				s.expect(t, tc.promises...)
			})
		})
	}
}

// A strict pod that stays Terminating is lost, and its id's partitions need not wait for the write that says so.
func TestPartitionsThatLeaveAnIDTooSoonAreSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		before  time.Duration // how long ago the id had its holder
		late    bool          // it had its entry for long, and locked only at last
		ended   time.Duration // how long ago its pod should have ended, 0 for a pod that is not deleted
		strict  bool
		promise string
	}{
		"at once":                        {promise: moves},
		"after failover-after":           {before: world.FailoverAfter},
		"of a pod that locked just now":  {late: true},
		"of a pod that is lost":          {ended: time.Second, strict: true},
		"of a pod that is not lost yet":  {ended: -3 * time.Second, strict: true, promise: moves},
		"of a pod that may work forever": {ended: 10 * time.Second, promise: moves},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.Alone(func() {
					s.follow(t, a)
					if s.judge.parts.taken[1] = -moment; tc.late {
						s.row(t, halves, a, b)
						s.judge.Look()
					}
					share := receipt.Share{ID: 1, Of: 4, Partitions: placement.Of(2, 3)}
					s.receipt(b, b, receipt.Receipt{State: receipt.Locks, Share: share, Strict: tc.strict, Write: "one"})
					if tc.ended != 0 {
						s.Server.Change(object.Pods, b.Pod, server.Writer{Manager: "kubectl"}, func(o object.Object) {
							object.Need(o, object.Metadata)["deletionTimestamp"] = time.Now().Add(-tc.ended).UTC().Format(time.RFC3339)
						})
					}
					s.row(t, halves, a, b)
					s.judge.Look()
					if tc.before > 0 {
						s.judge.parts.alive[1] = -tc.before
					}
					s.row(t, halves, a)
				})
				s.then(func() {
					s.row(t, `{"0":"0-3"}`, a)
					s.expect(t, tc.promise)
				})
			})
		})
	}
}

func TestMovesBeyondWhatANewCountNeedsAreSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		rows    []string
		promise string
	}{
		"two move":                       {[]string{`{"0":"0-3","1":""}`, halves}, ""},
		"one after the other":            {[]string{`{"0":"0-1,3","1":""}`, `{"0":"0-1,3","1":"2"}`, halves}, ""},
		"one moves there and back again": {[]string{`{"0":"0","1":"1-3"}`, halves}, moves},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.row(t, `{"0":"0-3"}`, a)
				if !s.judge.Scale() {
					t.Fatal("moves are not counted")
				}
				for _, row := range tc.rows {
					s.row(t, row, a, b)
				}
				s.judge.Scaled()
				s.expect(t, tc.promise)
			})
		})
	}
}

func TestAPartitionThatNoPodWorksOnIsMissedBeforeTheRepair(t *testing.T) {
	for name, tc := range map[string]struct {
		worksOn []int
		change  func(s stage, b *world.Process)
		want    string
	}{
		"all are worked on": {[]int{0, 1, 2, 3}, nil, ""},
		"one is not":        {[]int{0, 1, 2}, nil, "no pod works on partition 3 of 4"},
		"one is not, beside a pod out of the workload": {[]int{0, 1, 2}, func(s stage, b *world.Process) { s.Relabel(b.Pod) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.row(t, `{"0":"0-3","1":""}`, a, b)
				s.work(a, 0, tc.worksOn...)
				s.work(b, 1)
				if tc.change != nil {
					tc.change(s, b)
				}
				if got := s.judge.unserved(s.Owner()); got != tc.want {
					t.Errorf("missing: %q, want %q", got, tc.want)
				}
			})
		})
	}
}
