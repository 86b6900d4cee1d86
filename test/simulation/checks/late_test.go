package checks

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// publishes has a process publish a state, with a token if it is assigned to id 0.
func (s stage) publishes(p *world.Process, state identity.State, tokenOf int64, p0 identity.Partitions) {
	id := identity.Identity{State: state, ID: identity.None, Count: s.Profile.Count, Partitions: p0}
	if state == identity.StateAssigned {
		id.ID, id.Token = 0, tokenOf
	}
	p.Shown = id
	s.judge.Told(p, id)
}

func TestATokenThatIsPublishedAgainIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		between identity.State
		again   int64
		promise string
	}{
		"after a fence":              {identity.StateFenced, 5, token},
		"after a loss":               {identity.StateLost, 5, token},
		"a higher one":               {identity.StateFenced, 6, ""},
		"after a drain that was off": {identity.StateDraining, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{}, func(s stage) {
				a := s.Puppet("a")
				s.publishes(a, identity.StateAssigned, 5, identity.Partitions{})
				s.publishes(a, tc.between, 0, identity.Partitions{})
				s.publishes(a, identity.StateAssigned, tc.again, identity.Partitions{})
				s.expect(t, tc.promise)
			})
		})
	}
}

func TestWhatIsPublishedWhenAStopIsAskedFor(t *testing.T) {
	shows := func(stopping ...int) identity.Partitions {
		return identity.PartitionsOf(4, []identity.Share{{Set: placement.Of(0, 1, 2), Token: 5}}, placement.Of(stopping...), 1)
	}
	one, all := allocator.Stop{Partitions: placement.Of(1), Number: 1}, allocator.Stop{All: true, Number: 1}
	for name, tc := range map[string]struct {
		state   identity.State
		parts   identity.Partitions
		stop    allocator.Stop
		promise string
	}{
		"it shows that":                      {identity.StateAssigned, shows(1), one, ""},
		"it does not":                        {identity.StateAssigned, shows(), one, shown},
		"it waits, as it shows":              {identity.StatePending, identity.Partitions{}, one, shown},
		"all is to stop, and it has an id":   {identity.StateAssigned, shows(), all, shown},
		"all is to stop, and it is fenced":   {identity.StateFenced, identity.Partitions{}, all, ""},
		"it drains, and shows another drain": {identity.StateDraining, identity.Partitions{}, all, shown},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{}, func(s stage) {
				a := s.Puppet("a")
				s.publishes(a, tc.state, 5, tc.parts)
				s.judge.Asked(a, tc.stop)
				s.expect(t, tc.promise)
			})
		})
	}
}

// late has the judge look, and once more when so much time has passed.
func (s stage) late(by time.Duration) {
	g := s.judge.progress
	g.look()
	for key := range g.since {
		g.since[key] -= by
	}
	g.look()
}

func TestDeadNamesAreSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		slots   string
		lives   bool
		promise string
	}{
		"it names who lives":       {`{"0":"a"}`, true, ""},
		"it names a dead one":      {`{"0":"a","1":"gone"}`, true, leftovers},
		"no pod could take it out": {`{"1":"gone"}`, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{}, func(s stage) {
				if tc.lives {
					a := s.Puppet("a")
					s.adopt(a)
					s.locks(a, 0)
					s.act(a, 0, 5)
				}
				s.user(assignment.Key, tc.slots)
				s.late(forgets + 2*time.Second)
				s.expect(t, tc.promise)
			})
		})
	}
}

func TestALeaseThatIsLeftOverIsSeen(t *testing.T) {
	labels := func(id string) object.Object {
		return object.Object{receipt.IDLabel: id, receipt.OwnerLabel: assignment.OwnerLabelValue("ReplicaSet/" + world.OwnerName)}
	}
	for name, tc := range map[string]struct {
		labels  object.Object
		strict  bool
		deaf    bool
		promise string
	}{
		"of a slot that no pod has any more":        {labels("7"), true, false, leftovers},
		"of a slot below the count":                 {labels("1"), true, false, ""},
		"the owner's label was taken away":          {object.Object{receipt.IDLabel: "7"}, true, false, ""},
		"no pod may delete it":                      {labels("7"), false, false, ""},
		"the strict pod does not hear of the count": {labels("7"), true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{FenceAfter: 10 * time.Second}, func(s stage) {
				a := s.Puppet("a")
				s.adopt(a)
				s.locks(a, 0)
				s.act(a, 0, 5)
				s.user(assignment.Key, `{"0":"a"}`)
				if !tc.strict {
					a.FenceAfter = 0
				}
				if tc.deaf {
					a.Deliver(time.Hour, func() {}, func() {})
					b := s.Puppet("b")
					b.FenceAfter = 0
					s.adopt(b)
					s.locks(b, 1)
					s.act(b, 1, 15)
					s.user(assignment.Key, `{"0":"a","1":"b"}`)
				}
				s.Server.Put(object.KindOf(object.Leases), object.Object{object.Metadata: object.Object{"name": "left", "labels": tc.labels}}, byController())
				s.late(forgets + s.judge.progress.leaseTime() + 2*time.Second)
				s.expect(t, tc.promise)
			})
		})
	}
}

// adopt has the workload control a puppet's pod.
func (s stage) adopt(p *world.Process) {
	owner := s.Owner()
	v := s.Server.Get(object.Pods, p.Pod)
	next := object.Clone(v.Object)
	object.Need(next, object.Metadata)["ownerReferences"] = object.ControlledBy(owner.Kind, owner.Object)
	s.Server.Put(v.Kind, next, byController())
}

func TestAHolderThatLetsGoForWhoCameLaterIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		noted   bool
		first   string
		promise string
	}{
		"it has noted that it acts, and came first": {true, "a", density},
		"it has not noted that":                     {false, "a", ""},
		"the other came first":                      {true, "b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{}, func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				if tc.first == "b" {
					s.takes(b)
				}
				s.takes(a)
				if tc.first == "a" {
					s.takes(b)
				}
				s.act(a, 0, 5)
				if tc.noted {
					s.locks(a, 0)
				}
				s.receipt(a, a, receipt.Receipt{State: receipt.Waits, Write: "waits"})
				s.expect(t, tc.promise)
			})
		})
	}
}

func TestAHolderThatDoesNotNoteThatItActsIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		noted, cut bool
		promise    string
	}{
		"it has not noted it": {false, false, prompt},
		"it has noted it":     {true, false, ""},
		"it is cut off":       {false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{}, func(s stage) {
				a := s.Puppet("a")
				s.adopt(a)
				s.takes(a)
				s.act(a, 0, 5)
				if a.Cut = tc.cut; tc.noted {
					s.locks(a, 0)
				}
				s.user(assignment.Key, `{"0":"a"}`)
				s.late(notes + 2*time.Second)
				s.expect(t, tc.promise)
			})
		})
	}
}

func TestAProcessThatAsksTooMuchIsSeen(t *testing.T) {
	const central = mostOfController + askedForEachPod
	for calls, promise := range map[int]string{mostAMinute: "", mostAMinute + 1: bounded, central: "", central + 1: bounded} {
		staged(t, profile.Profile{}, func(s stage) {
			a := s.Puppet("a")
			a.Controls = calls >= central
			s.judge.progress.checkPace()
			a.Calls = calls
			s.judge.progress.checkPace()
			s.expect(t, promise)
		})
	}
}

func TestAProcessThatWritesTheOwnerTooOftenIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		controls bool
		writes   int
		promise  string
	}{
		"as often as it may":         {false, mostProposals, ""},
		"too often":                  {false, mostProposals + 1, bounded},
		"a controller for a new pod": {true, mostProposals + ofEachPod, ""},
		"a controller too often":     {true, mostProposals + ofEachPod + 1, bounded},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{}, func(s stage) {
				a := s.Puppet("a")
				a.Controls = tc.controls
				s.judge.progress.checkPace()
				s.adopt(a)
				a.Proposals = tc.writes
				s.judge.progress.checkPace()
				s.expect(t, tc.promise)
			})
		})
	}
}

// Work may have stopped on a part of what is to stop: from then on only the rest is to be shown.
func TestAStopThatIsShownLateIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		left    placement.Set
		promise string
	}{
		"the work on all continues":       {placement.Set{}, prompt},
		"that on partition 2 has stopped": {placement.Of(2), ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a := s.Puppet("a")
				s.adopt(a)
				s.work(a, 0, 0)
				s.locks(a, 0, 0, 1)
				shows := func(stopping ...int) {
					shares := []identity.Share{{Set: placement.Of(0, 1, 2), Token: 5}}
					s.publishes(a, identity.StateAssigned, 5, identity.PartitionsOf(4, shares, placement.Of(stopping...), 1))
				}
				shows(1, 2)
				s.judge.Asked(a, allocator.Stop{Partitions: placement.Of(1, 2), Number: 1})
				s.judge.Left(a, 1, tc.left)
				shows(1)
				s.user(assignment.Key, `{"0":"a"}`)
				s.late(tells + 2*time.Second)
				s.expect(t, tc.promise)
			})
		})
	}
}

func TestAPartitionThatIsIdleIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		row     string
		promise string
	}{
		"a pod that runs is to have it":       {`{"0":"0-3"}`, prompt},
		"the id of one that ended is to have": {halves, ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.adopt(a)
				s.adopt(b)
				s.work(a, 0, 0, 1)
				s.locks(a, 0, 0, 1)
				s.locks(b, 1)
				s.row(t, tc.row, a, b)
				b.Ended = true
				s.late(takesOver + s.judge.progress.leaseTime() + 2*time.Second)
				s.expect(t, tc.promise, tc.promise)
			})
		})
	}
}

func TestAReceiptThatKeepsAPartitionIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		locks   []int
		all     bool // all its work is to stop, and that on partition 0 hangs
		promise string
	}{
		"it locks what it works on":     {[]int{0}, false, ""},
		"it locks more":                 {[]int{0, 1}, false, prompt},
		"it locks more, and work hangs": {[]int{0, 1}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a := s.Puppet("a")
				s.adopt(a)
				s.work(a, 0, 0)
				s.locks(a, 0, tc.locks...)
				s.publishes(a, identity.StateAssigned, 5, identity.PartitionsOf(4, []identity.Share{{Set: placement.Of(0), Token: 5}}, placement.Set{}, 0))
				if tc.all {
					s.publishes(a, identity.StatePending, 0, identity.PartitionsOf(0, nil, placement.Set{}, 1))
					s.judge.Asked(a, allocator.Stop{All: true, Partitions: placement.Of(tc.locks...), Number: 1})
				}
				s.user(assignment.Key, `{"0":"a"}`)
				s.late(unlocks + 2*time.Second)
				s.expect(t, tc.promise)
			})
		})
	}
}

func byController() server.Writer { return server.Writer{Manager: world.ControllerManager} }
