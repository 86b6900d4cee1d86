package simulation

import (
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
)

// staged has a made-up history judged: processes act as the test says, and no production code runs.
func staged(t *testing.T, p profile.Profile, play func(w *world)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		p.Resource, p.Nodes, p.Count = object.ReplicaSets, 1, 2
		w := newWorld(1, p)
		w.Alone(func() {
			w.makeNodes()
			w.createOwner(p.Count, 1)
		})
		play(w)
	})
}

// actor is a process with a pod, which acts under nothing yet.
func (w *world) actor(name string) *process {
	v := w.server.Put(object.KindOf(object.Pods), object.Object{
		object.Metadata: object.Object{"name": name, "labels": object.Object{appLabel: ownerName}}, "spec": object.Object{}, "status": object.Object{"phase": "Running"},
	}, server.Writer{Manager: kubelet})
	p := w.newProcess(name, object.UID(v.Object), 1, w.nodes[0])
	p.launched = true
	w.pods[podKey(p.pod, p.uid)].process = p
	w.processes = append(w.processes, p)
	return p
}

// act has a process act under an id, or under none, and the judge look.
func (w *world) act(p *process, id int, epoch int64) {
	p.working = nil
	if id != identity.None {
		p.working = &identity.Identity{State: identity.StateAssigned, ID: id, Count: w.profile.Count, Epoch: epoch}
	}
	w.judge.look()
}

// epoch writes the owner's epoch: by a process of ours, or nil for somebody else.
func (w *world) epoch(by *process, epoch int64) {
	w.serving = by
	w.server.Change(w.profile.Resource, ownerName, server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
		object.SetText(o, "annotations", assignment.EpochKey, strconv.FormatInt(epoch, 10))
	})
	w.serving = nil
}

func (w *world) expect(t *testing.T, promise string) {
	t.Helper()
	broken := make([]string, 0, len(w.judge.violations))
	for _, v := range w.judge.violations {
		broken = append(broken, v.Promise)
	}
	want := []string{promise}
	if promise == "" {
		want = nil
	}
	if !slices.Equal(broken, want) {
		t.Errorf("broken: %v, want %v: %v", broken, want, w.judge.violations)
	}
}

func TestAGhostHidesNoPair(t *testing.T) {
	staged(t, profile.Profile{}, func(w *world) {
		ghost, a, b := w.actor("ghost"), w.actor("a"), w.actor("b")
		w.pods[podKey(ghost.pod, ghost.uid)].forced = true
		w.act(ghost, 0, 1)
		w.act(a, 0, 2)
		w.expect(t, "")
		w.act(b, 0, 3)
		w.expect(t, exclusion)
	})
}

func TestAForeignWriteExcusesNoToken(t *testing.T) {
	staged(t, profile.Profile{Skew: time.Hour}, func(w *world) {
		a, b := w.actor("a"), w.actor("b")
		w.epoch(a, 10)
		w.act(a, 0, 10)
		w.server.Change(w.profile.Resource, ownerName, server.Writer{Manager: "kubectl"}, func(o object.Object) {
			object.SetText(o, "annotations", assignment.SealKey, "") // the epoch is still there
		})
		w.act(a, identity.None, 0)
		w.epoch(b, 9)
		w.act(b, 0, 9)
		w.expect(t, token)
	})
}

func TestAnErasedEpochExcusesATokenOnlyWhereClocksDiffer(t *testing.T) {
	for skew, promise := range map[time.Duration]string{0: token, time.Hour: ""} {
		staged(t, profile.Profile{Skew: skew}, func(w *world) {
			a, b := w.actor("a"), w.actor("b")
			w.epoch(a, 10)
			w.act(a, 0, 10)
			w.act(a, identity.None, 0)
			w.epoch(nil, 0)
			w.epoch(b, 9)
			w.act(b, 0, 9)
			w.expect(t, promise)
		})
	}
}

func TestAnErasedEpochThatAReceiptRemembersExcusesNothing(t *testing.T) {
	staged(t, profile.Profile{Skew: time.Hour}, func(w *world) {
		a, b := w.actor("a"), w.actor("b")
		w.epoch(a, 10)
		w.act(a, 0, 10)
		w.server.Change(object.Pods, a.pod, server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
			r := assignment.Receipt{UID: a.uid, Owner: "ReplicaSet/" + ownerName, Epoch: 10}
			object.SetText(o, "annotations", assignment.ReceiptKey, r.Encode())
		})
		w.act(a, identity.None, 0)
		w.epoch(nil, 0)
		w.epoch(b, 9)
		w.act(b, 0, 9)
		w.expect(t, token)
	})
}

func TestAnIDThatIsTakenAgainInTheRestIsSeen(t *testing.T) {
	staged(t, profile.Profile{}, func(w *world) {
		a := w.actor("a")
		w.act(a, 0, 1)
		w.judge.rest()
		w.act(a, 0, 1)
		w.expect(t, "")
		w.act(a, identity.None, 0)
		w.act(a, 0, 1)
		w.expect(t, moves)
	})
}

func TestATokenThatIsNewInTheRestIsSeen(t *testing.T) {
	staged(t, profile.Profile{}, func(w *world) {
		a := w.actor("a")
		w.act(a, 0, 1)
		w.judge.rest()
		w.act(a, 0, 2) // it let go and took again between two looks
		w.expect(t, moves)
	})
}

func TestAWaiterBesideAFreeSlotIsSeenBeforeTheRepair(t *testing.T) {
	staged(t, profile.Profile{}, func(w *world) {
		a, b := w.actor("a"), w.actor("b")
		w.act(a, 0, 1)
		if missing := w.judge.served(); !strings.Contains(missing, "b#1 waits") {
			t.Errorf("id 1 is free and b waits, but %q is missing", missing)
		}
		w.relabel(b.pod)
		if missing := w.judge.served(); missing != "" {
			t.Errorf("a pod that somebody took out of the workload may wait, but %s", missing)
		}
		c := w.actor("c")
		w.act(c, 1, 2)
		w.actor("d")
		if missing := w.judge.served(); missing != "" {
			t.Errorf("no slot is free, but %s", missing)
		}
	})
}

func TestASlotOfAPodThatNeverRanIsMissedByThoseWhoGetNone(t *testing.T) {
	for served, promise := range map[string]string{`{"0":"a","1":"stuck"}`: "", `{"0":"other","1":"stuck"}`: prompt} {
		staged(t, profile.Profile{}, func(w *world) {
			a := w.actor("a")
			w.server.Put(object.KindOf(object.Pods), object.Object{
				object.Metadata: object.Object{"name": "stuck", "labels": object.Object{appLabel: ownerName}}, "spec": object.Object{}, "status": object.Object{"phase": "Pending"},
			}, server.Writer{Manager: kubelet})
			w.pods[podKey(a.pod, a.uid)].runs = 1
			w.judge.progress.slotless = map[*process]time.Duration{a: w.Now() - waited}
			w.serving = a
			w.server.Change(w.profile.Resource, ownerName, server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
				object.SetText(o, "annotations", assignment.DefaultKey, served)
			})
			w.serving = nil
			w.expect(t, promise)
		})
	}
}
