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
	"github.com/idalloc/idalloc/pkg/identity"
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
func (s stage) act(p *world.Process, id int, epoch int64) {
	p.Act(nil)
	if id != identity.None {
		p.Act(&identity.Identity{State: identity.StateAssigned, ID: id, Count: s.Profile.Count, Epoch: epoch})
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

// then lets what is under way arrive before it does something.
func (s stage) then(do func()) {
	time.Sleep(time.Millisecond) //nolint:forbidigo // time is virtual
	s.Alone(do)
}

// epoch writes the owner's epoch: by a process of ours, or nil for somebody else.
func (s stage) epoch(by *world.Process, epoch int64) {
	s.Serving = by
	s.ChangeOwner(server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
		object.SetText(o, "annotations", assignment.EpochKey, strconv.FormatInt(epoch, 10))
	})
	s.Serving = nil
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

func TestAForeignWriteExcusesNoToken(t *testing.T) {
	staged(t, profile.Profile{Skew: time.Hour}, func(s stage) {
		a, b := s.Puppet("a"), s.Puppet("b")
		s.epoch(a, 10)
		s.act(a, 0, 10)
		s.ChangeOwner(server.Writer{Manager: "kubectl"}, func(o object.Object) {
			object.SetText(o, "annotations", assignment.SealKey, "") // the epoch is still there
		})
		s.act(a, identity.None, 0)
		s.epoch(b, 9)
		s.act(b, 0, 9)
		s.expect(t, token)
	})
}

func TestAnErasedEpochExcusesATokenOnlyWhereClocksDiffer(t *testing.T) {
	for skew, promise := range map[time.Duration]string{0: token, time.Hour: ""} {
		staged(t, profile.Profile{Skew: skew}, func(s stage) {
			a, b := s.Puppet("a"), s.Puppet("b")
			s.epoch(a, 10)
			s.act(a, 0, 10)
			s.act(a, identity.None, 0)
			s.epoch(nil, 0)
			s.epoch(b, 9)
			s.act(b, 0, 9)
			s.expect(t, promise)
		})
	}
}

// A process that was confirmed before the epoch was erased may begin after it, with the old token.
func TestAnErasedEpochExcusesATokenAlsoAfterWorkUnderTheOldOne(t *testing.T) {
	staged(t, profile.Profile{Skew: time.Hour}, func(s stage) {
		a, b := s.Puppet("a"), s.Puppet("b")
		s.epoch(a, 10)
		s.act(a, 0, 10)
		s.act(a, identity.None, 0)
		s.epoch(nil, 0)
		s.epoch(b, 9)
		s.act(a, 0, 10)
		s.act(a, identity.None, 0)
		s.act(b, 0, 9)
		s.expect(t, "")
	})
}

// A ghost's claim is not recorded, so the next recorded one has the token that fell.
func TestATokenThatFellWithAGhostIsComparedWithTheGhosts(t *testing.T) {
	for next, promises := range map[int64][]string{9: nil, 7: {token, linear}} {
		staged(t, profile.Profile{Skew: time.Hour}, func(s stage) {
			a, ghost, b := s.Puppet("a"), s.Puppet("ghost"), s.Puppet("b")
			s.epoch(a, 10)
			s.act(a, 0, 10)
			s.act(a, identity.None, 0)
			s.epoch(nil, 0)
			s.epoch(b, 8)
			s.Forsake(s.Server.Get(object.Pods, ghost.Pod))
			s.act(ghost, 0, 8)
			s.act(b, 0, next)
			s.judge.Decide()
			s.expect(t, promises...)
		})
	}
}

// A receipt that is written after the erased epoch was read may be too late for the planner's list.
func TestAnErasedEpochThatAReceiptRemembersExcusesNothing(t *testing.T) {
	for late, promise := range map[bool]string{false: token, true: ""} {
		staged(t, profile.Profile{Skew: time.Hour}, func(s stage) {
			a, b := s.Puppet("a"), s.Puppet("b")
			writes := []func(){
				func() {
					s.Server.Change(object.Pods, a.Pod, server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
						r := assignment.Receipt{UID: a.UID, Owner: "ReplicaSet/" + world.OwnerName, Epoch: 10}
						object.SetText(o, "annotations", assignment.ReceiptKey, r.Encode())
					})
				},
				func() { s.epoch(nil, 0) },
			}
			if late {
				slices.Reverse(writes)
			}
			s.epoch(a, 10)
			s.act(a, 0, 10)
			s.act(a, identity.None, 0)
			for _, write := range writes {
				write()
			}
			s.epoch(b, 9)
			s.act(b, 0, 9)
			s.expect(t, promise)
		})
	}
}

func TestOnlyAPodWhoseProgramFailedMovesLate(t *testing.T) {
	for failed, promise := range map[int]string{0: moves, 1: ""} {
		staged(t, profile.Profile{}, func(s stage) {
			a := s.Puppet("a")
			s.Server.Change(object.Pods, a.Pod, server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
				r := assignment.Receipt{UID: a.UID, Owner: "ReplicaSet/" + world.OwnerName, Epoch: 1, Failed: failed}
				object.SetText(o, "annotations", assignment.ReceiptKey, r.Encode())
			})
			s.act(a, 0, 1)
			s.judge.excused = -time.Hour
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
			t.Errorf("a pod that somebody took out of the workload may wait, but %s", missing)
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
	for served, promise := range map[string]string{`{"0":"a","1":"stuck"}`: "", `{"0":"other","1":"stuck"}`: prompt} {
		staged(t, profile.Profile{}, func(s stage) {
			a := s.Puppet("a")
			s.Server.Put(object.KindOf(object.Pods), object.Object{
				object.Metadata: object.Object{"name": "stuck", "labels": object.Object{world.AppLabel: world.OwnerName}}, "spec": object.Object{}, "status": object.Object{"phase": "Pending"},
			}, server.Writer{Manager: "kubectl-create"})
			s.judge.progress.slotless = map[*world.Process]time.Duration{a: s.Now() - waited}
			s.Serving = a
			s.ChangeOwner(server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
				object.SetText(o, "annotations", assignment.DefaultKey, served)
			})
			s.Serving = nil
			s.expect(t, promise)
		})
	}
}
