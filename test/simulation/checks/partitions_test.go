package checks

import (
	"maps"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
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
func (s stage) row(t *testing.T, text string, epoch int64, pods ...*world.Process) {
	t.Helper()
	owners, err := placement.ParseOwners(text, 4)
	if err != nil {
		t.Fatal(err)
	}
	state := assignment.State{
		Epoch: epoch, Slots: assignment.Slots{}, UIDs: assignment.Slots{},
		Partitions: &assignment.Partitions{Count: 4, Strategy: placement.NameSticky, Owners: owners, Epoch: epoch},
	}
	for id, p := range pods {
		if p != nil { // an id without a holder
			state.Slots[id], state.UIDs[id], s.Serving = p.Pod, assignment.ShortUID(p.UID), p
		}
	}
	s.ChangeOwner(server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
		for key, value := range state.Encode(assignment.DefaultKey, object.UID(o)) {
			object.SetText(o, "annotations", key, value)
		}
	})
	s.Serving = nil
}

// work has a process act under an id and work on partitions, with the token of the first row.
func (s stage) work(p *world.Process, id int, on ...int) {
	const token = 5
	parts := map[int]int64{}
	for _, k := range on {
		parts[k] = token
	}
	p.WorkOn(parts)
	s.act(p, id, token)
}

func TestAPartitionThatIsTakenFromUnderItsWorkIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		worksOn []int
		promise string
	}{
		"the work goes on":     {[]int{0, 1, 2, 3}, exclusion},
		"the work has stopped": {[]int{0, 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.row(t, `{"0":"0-3","1":""}`, 5, a, b)
				s.work(a, 0, tc.worksOn...)
				s.work(b, 1)
				s.row(t, `{"0":"0-1,3","1":"2"}`, 6, a, b)
				s.expect(t, tc.promise)
			})
		})
	}
}

// A strict pod that stays Terminating is lost, and its id's partitions need not wait for the write that says so.
func TestPartitionsThatLeaveAnIDTooSoonAreSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		before  time.Duration // how long ago the id had its holder
		ended   time.Duration // how long ago its pod should have ended, 0 for a pod that is not deleted
		fence   time.Duration // of its receipt
		promise string
	}{
		"at once":                        {promise: moves},
		"after failover-after":           {before: world.FailoverAfter},
		"of a pod that is lost":          {ended: 10 * time.Second, fence: time.Second},
		"of a pod that is not lost yet":  {ended: 8 * time.Second, fence: time.Second, promise: moves},
		"of a pod that may work forever": {ended: 10 * time.Second, promise: moves},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.Alone(func() {
					s.follow(t, a)
					s.receipt(b, assignment.Receipt{ID: 1, FenceAfter: tc.fence}, 2, 3)
					if tc.ended > 0 {
						s.Server.Change(object.Pods, b.Pod, server.Writer{Manager: "kubectl"}, func(o object.Object) {
							object.Need(o, object.Metadata)["deletionTimestamp"] = time.Now().Add(-tc.ended).UTC().Format(time.RFC3339)
						})
					}
					s.row(t, halves, 5, a, b)
					s.judge.Look()
					if tc.before > 0 {
						s.judge.parts.alive[1] = -tc.before
					}
					s.row(t, halves, 6, a)
				})
				s.then(func() {
					s.row(t, `{"0":"0-3"}`, 7, a)
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
				s.row(t, `{"0":"0-3"}`, 5, a)
				if !s.judge.Scale() {
					t.Fatal("moves are not counted")
				}
				for i, row := range tc.rows {
					s.row(t, row, int64(6+i), a, b)
				}
				s.judge.Scaled()
				s.expect(t, tc.promise)
			})
		})
	}
}

func TestAPartitionThatNobodyWorksOnIsMissedBeforeTheRepair(t *testing.T) {
	for name, tc := range map[string]struct {
		worksOn []int
		change  func(s stage, b *world.Process)
		want    string
	}{
		"all are worked on": {[]int{0, 1, 2, 3}, nil, ""},
		"one is not":        {[]int{0, 1, 2}, nil, "nobody works on partition 3 of 4"},
		"one is not, beside a pod out of the workload": {[]int{0, 1, 2}, func(s stage, b *world.Process) { s.Relabel(b.Pod) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				for id, p := range []*world.Process{a, b} {
					s.Server.Change(object.Pods, p.Pod, server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
						r := assignment.Receipt{UID: p.UID, Owner: "ReplicaSet/" + world.OwnerName, ID: id, Epoch: 5}
						maps.Copy(object.Need(o, object.Metadata, "annotations"), object.Object{assignment.ReceiptKey: r.Encode()})
					})
				}
				s.row(t, `{"0":"0-3","1":""}`, 5, a, b)
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
