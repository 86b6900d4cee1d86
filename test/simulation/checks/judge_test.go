package checks

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// stage is a made-up history: processes act as the test says, and no production code runs.
type stage struct {
	*world.World
	judge *Judge
}

// staged has a made-up history judged.
func staged(t *testing.T, p profile.Profile, play func(s stage)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		p.Resource, p.Nodes, p.Count = object.ReplicaSets, 1, 2
		w := world.New(1, p)
		s := stage{w, New(w)}
		w.Alone(func() {
			w.MakeNodes()
			w.CreateOwner(p.Count, 1)
		})
		play(s)
	})
}

// act has a process act under an id, or under none, and the judge look.
func (s stage) act(p *world.Process, id int, token int64) {
	p.Act(nil)
	if id != identity.None {
		p.Act(&identity.Identity{State: identity.StateAssigned, ID: id, Count: s.Profile.Count, Token: token})
	}
	s.judge.Look()
}

// follow has the server send a process what becomes of the owner from now on.
func (s stage) follow(t *testing.T, p *world.Process) {
	t.Helper()
	path := "/apis/apps/v1/namespaces/" + server.Namespace + "/" + s.Profile.Resource + "?watch=true&resourceVersion=1000000"
	watch, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://simulation.invalid"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request, err := server.ReadRequest(watch, p)
	if err != nil {
		t.Fatal(err)
	}
	request.Dice = s.Dice("watch", p.ID)
	if answer := s.Server.Serve(request); answer.Stream == nil {
		t.Fatalf("the watch is answered with %d: %s", answer.Code, answer.Body)
	}
}

// receipt has a pod's receipt written: by a process of ours, whose write is kept, or by another program for nil.
func (s stage) receipt(by, of *world.Process, r receipt.Receipt) {
	s.Serving, s.Sent = by, s.Sent+1
	defer func() { s.Serving = nil }()
	s.Server.Change(object.Pods, of.Pod, server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
		object.SetText(o, "annotations", receipt.Key, "{")
		if r.Write != "" {
			r.UID, r.Owner = of.UID, "ReplicaSet/"+world.OwnerName
			object.SetText(o, "annotations", receipt.Key, r.Encode())
		}
		if r.State == receipt.Locks {
			object.SetText(o, "labels", receipt.IDLabel, strconv.Itoa(r.Share.ID))
			object.SetText(o, "labels", receipt.OwnerLabel, assignment.OwnerLabelValue(r.Owner))
		}
	})
}

// locks has a process say by its receipt that it has the id and works on the partitions.
func (s stage) locks(p *world.Process, id int, on ...int) {
	s.receipt(p, p, receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: id, Of: 4, Partitions: placement.Of(on...)}, Token: 5, Write: strconv.Itoa(s.Sent)})
}

// takes has a process lock id 0. It does not say yet that it has it.
func (s stage) takes(p *world.Process) {
	s.receipt(p, p, receipt.Receipt{State: receipt.Locks, Write: strconv.Itoa(s.Sent)})
}

// then lets what is under way arrive before it does something.
func (s stage) then(do func()) {
	time.Sleep(time.Millisecond) //nolint:forbidigo // time is virtual
	s.Alone(do)
}

func (s stage) expect(t *testing.T, promises ...string) {
	t.Helper()
	broken := make([]string, 0, len(s.judge.violations))
	for _, v := range s.judge.violations {
		broken = append(broken, v.Promise)
	}
	want := slices.DeleteFunc(promises, func(promise string) bool { return promise == "" })
	if !slices.Equal(broken, want) {
		t.Errorf("broken: %v, want %v: %v", broken, want, s.judge.violations)
	}
}

func TestAGhostHidesNoPair(t *testing.T) {
	staged(t, profile.Profile{}, func(s stage) {
		ghost, a, b := s.Puppet("ghost"), s.Puppet("a"), s.Puppet("b")
		s.Forsake(s.Server.Get(object.Pods, ghost.Pod))
		s.act(ghost, 0, 1)
		s.act(a, 0, 2)
		s.expect(t, "")
		s.act(b, 0, 3)
		s.expect(t, exclusion)
	})
}

// Another writer removed the Lease of a pod that has outlived its grace period, and another pod began. The first one writes its Lease again while its work
// stops, and the other one hears of that.
func TestWorkThatBeganUnderALostLeaseHasTimeToStop(t *testing.T) {
	for _, began := range []bool{true, false} {
		for after, promise := range map[time.Duration]string{time.Second: "", lapses + time.Second: exclusion} {
			if !began {
				promise = exclusion // it saw the Lease
			}
			staged(t, profile.Profile{FenceAfter: 10 * time.Second}, func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.judge.changed[world.PodKey(a.Pod, a.UID)] = true
				s.act(a, 0, 1)
				if s.judge.leaseless[a.UID] = true; began {
					s.act(b, 0, 2)
				}
				s.expect(t, "")
				delete(s.judge.leaseless, a.UID)
				for is := range s.judge.together {
					s.judge.together[is] -= after
				}
				s.act(b, 0, 2)
				s.expect(t, promise)
			})
		}
	}
}

// A ghost that begins late can be told from its successor by its token, but not if both have the same.
func TestAGhostsTokenIsBelowItsSuccessors(t *testing.T) {
	for late, promise := range map[int64]string{1: "", 2: token} {
		staged(t, profile.Profile{}, func(s stage) {
			ghost, a := s.Puppet("ghost"), s.Puppet("a")
			s.Forsake(s.Server.Get(object.Pods, ghost.Pod))
			s.act(a, 0, 2)
			s.act(ghost, 0, late)
			s.expect(t, promise)
		})
	}
}

func TestAGhostsTokenIsNotWhatTheNextHoldersMustExceed(t *testing.T) {
	staged(t, profile.Profile{}, func(s stage) {
		ghost, a, b := s.Puppet("ghost"), s.Puppet("a"), s.Puppet("b")
		s.Forsake(s.Server.Get(object.Pods, ghost.Pod))
		s.act(a, 0, 3)
		s.act(ghost, 0, 1)
		s.act(a, identity.None, 0)
		s.act(b, 0, 2)
		s.expect(t, token)
	})
}

// Another program's change of a receipt is an excuse until its process writes again, but not between two processes in strict mode.
func TestAChangedReceiptIsAnExcuse(t *testing.T) {
	for name, tc := range map[string]struct {
		changed, written bool
		fence            time.Duration
		promises         []string
	}{
		"it did not change":                {promises: []string{exclusion}},
		"it did":                           {changed: true},
		"its process has written it since": {changed: true, written: true, promises: []string{exclusion}},
		"in strict mode":                   {changed: true, fence: time.Minute, promises: []string{exclusion}},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{FenceAfter: tc.fence}, func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.locks(a, 0)
				s.act(a, 0, 1)
				if tc.changed {
					s.receipt(nil, a, receipt.Receipt{})
				}
				if tc.written {
					s.locks(a, 0)
				}
				s.act(b, 0, 2)
				s.expect(t, tc.promises...)
			})
		})
	}
}

// Another program hid the lock of a pod, a second pod began with a higher token, and is gone. The first one keeps its token, but no pod takes one of before.
func TestAPodKeepsItsTokenBesideAnExcusedDouble(t *testing.T) {
	for at, promise := range map[int64]string{1: "", 2: token} {
		staged(t, profile.Profile{}, func(s stage) {
			a, b := s.Puppet("a"), s.Puppet("b")
			s.locks(a, 0)
			s.act(a, 0, 1)
			s.receipt(nil, a, receipt.Receipt{})
			s.act(b, 0, 3)
			s.act(b, identity.None, 0)
			s.act(a, identity.None, 0)
			s.locks(a, 0)
			s.act(a, 0, at)
			s.expect(t, promise)
		})
	}
}

func TestATokenIsOnePodsAlone(t *testing.T) {
	staged(t, profile.Profile{}, func(s stage) {
		a, b := s.Puppet("a"), s.Puppet("b")
		s.act(a, 0, 5)
		s.act(b, 1, 5)
		s.expect(t, token)
	})
}

func TestATokenThatFallsIsSeen(t *testing.T) {
	for name, next := range map[string]string{"of the same pod": "a", "of another pod": "b"} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{}, func(s stage) {
				pods := map[string]*world.Process{"a": s.Puppet("a"), "b": s.Puppet("b")}
				s.act(pods["a"], 0, 5)
				s.act(pods["a"], identity.None, 0)
				s.act(pods[next], 0, 4)
				s.expect(t, token)
			})
		})
	}
}

func TestAReceiptThatComesBackOrComesLateIsSeen(t *testing.T) {
	staged(t, profile.Profile{}, func(s stage) {
		a := s.Puppet("a")
		r := receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: 0}, Write: "one"}
		s.receipt(a, a, r)
		s.receipt(a, a, receipt.Receipt{State: receipt.Waits, Write: "two"})
		s.expect(t, "")
		s.receipt(a, a, r)
		s.expect(t, receipts)
		s.Sent = 0
		s.receipt(a, a, receipt.Receipt{State: receipt.Waits, Write: "three"})
		s.expect(t, receipts, receipts)
	})
}

func TestOnlyAPodWhoseProgramFailedMovesLate(t *testing.T) {
	for failed, promise := range map[int]string{1: moves, 2: ""} {
		staged(t, profile.Profile{}, func(s stage) {
			a := s.Puppet("a")
			s.receipt(a, a, receipt.Receipt{State: receipt.Waits, Write: "one", Rank: failed})
			s.act(a, 0, 1)
			s.judge.excusedAt = -time.Hour
			s.act(a, 1, 2)
			s.expect(t, promise)
		})
	}
}

func TestAnIDThatIsTakenAgainInTheRestIsSeen(t *testing.T) {
	staged(t, profile.Profile{}, func(s stage) {
		a := s.Puppet("a")
		s.act(a, 0, 1)
		s.judge.Rest()
		s.act(a, 0, 1)
		s.expect(t, "")
		s.act(a, identity.None, 0)
		s.act(a, 0, 1)
		s.expect(t, moves)
	})
}

func TestATokenThatIsNewInTheRestIsSeen(t *testing.T) {
	staged(t, profile.Profile{}, func(s stage) {
		a := s.Puppet("a")
		s.act(a, 0, 1)
		s.judge.Rest()
		s.act(a, 0, 2) // it let go and took again between two looks
		s.expect(t, moves)
	})
}

func TestAWaiterBesideAFreeSlotIsSeenBeforeTheRepair(t *testing.T) {
	staged(t, profile.Profile{}, func(s stage) {
		a, b := s.Puppet("a"), s.Puppet("b")
		s.act(a, 0, 1)
		if missing := s.judge.Served(); !strings.Contains(missing, "b#1 waits") {
			t.Errorf("id 1 is free and b waits, but %q is missing", missing)
		}
		s.Relabel(b.Pod)
		if missing := s.judge.Served(); missing != "" {
			t.Errorf("a pod that was taken out of the workload may wait, but %s", missing)
		}
		c := s.Puppet("c")
		s.act(c, 1, 2)
		s.Puppet("d")
		if missing := s.judge.Served(); missing != "" {
			t.Errorf("no slot is free, but %s", missing)
		}
	})
}

func TestASlotOfAPodThatNeverRanIsMissedByThoseWhoGetNone(t *testing.T) {
	for name, tc := range map[string]struct {
		served  string
		plans   bool
		promise string
	}{
		"both get one":           {`{"0":"a","1":"stuck"}`, true, ""},
		"it gets none":           {`{"0":"other","1":"stuck"}`, true, prompt},
		"a person edits the map": {`{"0":"other","1":"stuck"}`, false, ""},
	} {
		t.Log(name)
		staged(t, profile.Profile{}, func(s stage) {
			a := s.Puppet("a")
			s.Server.Put(object.KindOf(object.Pods), object.Object{
				object.Metadata: object.Object{"name": "stuck", "labels": object.Object{world.AppLabel: world.OwnerName}}, "spec": object.Object{}, "status": object.Object{"phase": "Pending"},
			}, server.Writer{Manager: "kubectl-create"})
			s.judge.progress.slotless = map[*world.Process]time.Duration{a: s.Now() - waited}
			if tc.plans {
				s.Serving = a
			}
			s.ChangeOwner(server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
				object.SetText(o, "annotations", assignment.Key, tc.served)
			})
			s.Serving = nil
			s.expect(t, tc.promise)
		})
	}
}

func TestAPodWhoseReceiptWasChangedHasItsTimeAgain(t *testing.T) {
	for changed, promise := range map[bool]string{false: prompt, true: ""} {
		staged(t, profile.Profile{}, func(s stage) {
			a := s.Puppet("a")
			s.receipt(a, a, receipt.Receipt{State: receipt.Waits, Write: "one"})
			s.ChangeOwner(server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
				object.SetText(o, "annotations", assignment.Key, `{"0":"a"}`)
			})
			s.judge.progress.look()
			for key := range s.judge.progress.since {
				s.judge.progress.since[key] -= time.Hour
			}
			if changed {
				s.receipt(nil, a, receipt.Receipt{State: receipt.Waits, Write: "two"})
			}
			s.judge.progress.look()
			s.expect(t, promise)
		})
	}
}
