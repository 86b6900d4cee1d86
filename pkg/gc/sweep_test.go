package gc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

// onlyA is a map in which pod "a" has slot 0.
const onlyA = `{"0":"a"}`

// slotsOf is what the Deployment's map says now.
func slotsOf(server *apifake.Server) string {
	if server.Get(apifake.Deployment, apifake.Worker) == nil {
		return ""
	}
	return server.Get(apifake.Deployment, apifake.Worker).GetAnnotations()[assignment.DefaultKey]
}

// tries is a backoff for so many tries again, one after the other.
func tries(n int) wait.Backoff { return wait.Backoff{Steps: n} }

func TestSweep(t *testing.T) {
	foreign := apifake.Managed(apifake.Assigned(2, held("a", "b")), map[string][]string{"kubectl": {assignment.SealKey}})
	untracked := apifake.Untracked(apifake.Assigned(2, held("a")))
	stillHeldByTheDead := apifake.Untracked(apifake.Assigned(2, held("a", "b")))
	newer := apifake.Assigned(2, held("a"))
	annotations := newer.GetAnnotations()
	annotations[assignment.SealKey] = "9" + annotations[assignment.SealKey][1:]
	newer.SetAnnotations(annotations)
	damaged := apifake.Untracked(apifake.Assigned(2, held("a")))
	annotations = damaged.GetAnnotations()
	annotations[assignment.SealKey] = "?"
	damaged.SetAnnotations(annotations)
	fullOfNobody := apifake.Untracked(apifake.Assigned(2, held("b")))
	annotations = fullOfNobody.GetAnnotations()
	annotations["team"] = strings.Repeat("x", 261_800)
	fullOfNobody.SetAnnotations(annotations)
	crowded := apifake.Assigned(3, held("a", "b"))
	annotations = crowded.GetAnnotations()
	annotations["team"] = strings.Repeat("x", 261_800)
	crowded.SetAnnotations(annotations)
	long := strings.Repeat("l", 250)
	full := apifake.Owner(2)
	full.SetAnnotations(map[string]string{"team": strings.Repeat("x", 262_000)})
	for name, tc := range map[string]struct {
		owner *unstructured.Unstructured
		pods  []*unstructured.Unstructured
		dry   bool
		want  Result
		slots string
		fails error
		full  bool // that there is no room is the error
	}{
		"frees the dead, and gives nothing out": {
			owner: apifake.Assigned(3, held("a", "b")), pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch), apifake.Pod("c")},
			want: Result{Victims: []Victim{{ID: 1, Pod: "b", Reason: itsGone}}, Wrote: true}, slots: onlyA,
		},
		"only looks": {
			owner: apifake.Assigned(3, held("a", "b")), pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch)}, dry: true,
			want: Result{Victims: []Victim{{ID: 1, Pod: "b", Reason: itsGone}}}, slots: `{"0":"a","1":"b"}`,
		},
		"has nothing to do": {
			owner: apifake.Assigned(3, held("a")), pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch)}, slots: onlyA,
		},
		"leaves alone who never used idalloc": {owner: apifake.Owner(3), pods: []*unstructured.Unstructured{apifake.Pod("a")}},
		"restores what the receipts say": {
			owner: apifake.Owner(3), pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch)}, want: Result{Restored: true, Wrote: true}, slots: onlyA,
		},
		"only looks at what the receipts say": {
			owner: apifake.Owner(3), pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch)}, dry: true, want: Result{Restored: true},
		},
		"restores a map that somebody else wrote": {
			owner: foreign, pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch), apifake.Holding("b", 1, epoch)},
			want: Result{Restored: true, Wrote: true}, slots: `{"0":"a","1":"b"}`,
		},
		"leaves a map that nobody can make clean": {
			owner: untracked, pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch)}, slots: onlyA,
		},
		"only looks at a map that nobody can make clean": {
			owner: untracked, pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch)}, dry: true, slots: onlyA,
		},
		"frees the dead where there is no room for a live pod's entry": {
			owner: crowded, pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch), apifake.Holding(long, 2, epoch)},
			want: Result{Victims: []Victim{{ID: 1, Pod: "b", Reason: itsGone}}, Wrote: true}, slots: onlyA,
		},
		"frees the dead of a map that nobody can make clean": {
			owner: stillHeldByTheDead, pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch)},
			want: Result{Victims: []Victim{{ID: 1, Pod: "b", Reason: itsGone}}, Restored: true, Wrote: true}, slots: onlyA,
		},
		"leaves a newer map alone": {
			owner: newer, fails: store.ErrNewer, slots: onlyA,
		},
		"does not look at a newer map": {
			owner: newer, dry: true, fails: store.ErrNewer, slots: onlyA,
		},
		"restores a map that is damaged and that nobody can make clean": {
			owner: damaged, pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch)}, want: Result{Restored: true, Wrote: true}, slots: onlyA,
		},
		"only looks at a map of nobody where there is no room": {
			owner: fullOfNobody, pods: []*unstructured.Unstructured{apifake.Pod("b"), apifake.Holding(long, 1, epoch)}, dry: true,
			want: Result{Restored: true}, slots: `{"0":"b"}`,
		},
		"has no owner": {fails: store.ErrGone},
		"finds no room": {
			owner: full, pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch)}, full: true,
		},
		"only looks where there is no room": {
			owner: full, pods: []*unstructured.Unstructured{apifake.Holding("a", 0, epoch)}, dry: true, want: Result{Restored: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := apifake.New(t)
			if tc.owner != nil {
				server.Put(tc.owner)
			}
			for _, pod := range tc.pods {
				server.Put(pod)
			}
			got, err := Sweep(t.Context(), storeOf(t, server), theRef(), tries(1), tc.dry)
			if _, tooLarge := errors.AsType[*assignment.TooLargeError](err); tooLarge != tc.full || (!tooLarge && !errors.Is(err, tc.fails)) {
				t.Errorf("the error is %v, want %v", err, tc.fails)
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			if s := slotsOf(server); s != tc.slots {
				t.Errorf("the map is %s, want %s", s, tc.slots)
			}
		})
	}
}

// dead is a server with one slot to free, of which patches are answered by f instead. f says whether it did.
func dead(t *testing.T, f func(w http.ResponseWriter, patch int) bool) *apifake.Server {
	t.Helper()
	server := apifake.New(t)
	server.Put(apifake.Assigned(2, held("a")))
	patches := 0
	server.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		patches++
		return f(w, patches)
	})
	return server
}

func conflict(w http.ResponseWriter) bool {
	apifake.Refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "changed")
	return true
}

func TestASweepTriesAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		conflicts, tries int
		fails            bool
	}{
		"one conflict":                     {conflicts: 1, tries: 1},
		"as many conflicts as tries":       {conflicts: 3, tries: 3},
		"one conflict more than tries":     {conflicts: 3, tries: 2, fails: true},
		"a conflict, and no second chance": {conflicts: 1, tries: 0, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := dead(t, func(w http.ResponseWriter, patch int) bool { return patch <= tc.conflicts && conflict(w) })
			got, err := Sweep(t.Context(), storeOf(t, server), theRef(), tries(tc.tries), false)
			if tc.fails != errors.Is(err, store.ErrConflict) || tc.fails != (err != nil) || got.Wrote == tc.fails {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	t.Run("not after an error that says what is wrong", func(t *testing.T) {
		patches := 0
		server := dead(t, func(w http.ResponseWriter, patch int) bool {
			patches = patch
			apifake.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "no")
			return true
		})
		if got, err := Sweep(t.Context(), storeOf(t, server), theRef(), tries(5), false); err == nil || patches != 1 || got.Wrote {
			t.Errorf("%+v, %v after %d writes", got, err, patches)
		}
	})
	t.Run("no longer than its context", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		end := errors.New("enough")
		server := dead(t, func(w http.ResponseWriter, _ int) bool { cancel(end); return conflict(w) })
		slow := wait.Backoff{Steps: 5, Duration: time.Hour}
		if _, err := Sweep(ctx, storeOf(t, server), theRef(), slow, false); !errors.Is(err, end) {
			t.Errorf("%v", err)
		}
	})
}

// Behind no answer a write may have happened, and then the sweep says what it did.
func TestASweepWhoseAnswerIsLost(t *testing.T) {
	lost := func(w http.ResponseWriter) bool {
		apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd")
		return true
	}
	freed := []Victim{{Pod: "a", Reason: itsGone}}
	t.Run("it had happened", func(t *testing.T) {
		var server *apifake.Server
		server = dead(t, func(w http.ResponseWriter, _ int) bool {
			server.Put(apifake.Assigned(2, assignment.State{Slots: assignment.Slots{}, Epoch: epoch + 1}))
			return lost(w)
		})
		got, err := Sweep(t.Context(), storeOf(t, server), theRef(), tries(2), false)
		if err != nil || !got.Wrote || fmt.Sprint(got.Victims) != fmt.Sprint(freed) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("it had not", func(t *testing.T) {
		server := dead(t, func(w http.ResponseWriter, patch int) bool { return patch == 1 && lost(w) })
		got, err := Sweep(t.Context(), storeOf(t, server), theRef(), tries(2), false)
		if err != nil || !got.Wrote || fmt.Sprint(got.Victims) != fmt.Sprint(freed) || slotsOf(server) != "{}" {
			t.Errorf("%+v, %v, the map is %s", got, err, slotsOf(server))
		}
	})
}

// What is told is what the last write did.
func TestASweepAfterALostAnswerFindsMore(t *testing.T) {
	var server *apifake.Server
	server = dead(t, func(w http.ResponseWriter, patch int) bool {
		if patch > 1 {
			return false
		}
		server.Put(apifake.Assigned(2, held("a", "b")))
		apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd")
		return true
	})
	got, err := Sweep(t.Context(), storeOf(t, server), theRef(), tries(2), false)
	if err != nil || !got.Wrote || len(got.Victims) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// The Deployment with a map of another's writing, in which idalloc wrote the fence-after last, or another did.
func fenced(byUs bool) *unstructured.Unstructured {
	state := held("a")
	state.FenceAfter = 30 * time.Second
	o := apifake.Assigned(2, state)
	if byUs {
		return apifake.Managed(o, map[string][]string{assignment.FieldManager: {assignment.FenceAfterKey}, "kubectl": {assignment.SealKey, assignment.DefaultKey}})
	}
	return apifake.Managed(o, map[string][]string{"kubectl": {assignment.SealKey, assignment.DefaultKey, assignment.FenceAfterKey}})
}

// annotation is what the Deployment says under the key after a sweep.
func annotation(t *testing.T, server *apifake.Server, key string) string {
	t.Helper()
	if got, err := Sweep(t.Context(), storeOf(t, server), theRef(), tries(1), false); err != nil || !got.Wrote {
		t.Fatalf("%+v, %v", got, err)
	}
	return server.Get(apifake.Deployment, apifake.Worker).GetAnnotations()[key]
}

func TestASweepKeepsTheFenceAfterThatIdallocWrote(t *testing.T) {
	for byUs, want := range map[bool]string{true: "30s", false: ""} {
		server := apifake.New(t)
		server.Put(fenced(byUs))
		server.Put(apifake.Holding("a", 0, epoch))
		if got := annotation(t, server, assignment.FenceAfterKey); got != want {
			t.Errorf("idalloc wrote it: %t; the fence-after is %q, want %q", byUs, got, want)
		}
	}
}

// In strict mode a process without contact may still use the slot of a holder that vanished, but not that of one that has ended.
func TestASweepQuarantinesTheSlotsOfThoseWhoMayStillRun(t *testing.T) {
	server := apifake.New(t)
	state := held("gone", "ended")
	state.FenceAfter = 30 * time.Second
	server.Put(apifake.Assigned(2, state))
	server.Put(ended(apifake.Pod("ended"), "Failed", ""))
	if got := annotation(t, server, assignment.QuarantineKey); !strings.HasSuffix(got, `:"0"}`) {
		t.Errorf("in quarantine are %s, want slot 0 alone", got)
	}
}

// A request is still met when its slot comes free, and stays until then.
func TestASweepKeepsToWhatPodsAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		slot            int
		slots, requests string
	}{"for a slot whose holder lives": {0, onlyA, `{"0":"c"}`}, "for a slot whose holder is dead": {1, `{"0":"a","1":"c"}`, ""}} {
		t.Run(name, func(t *testing.T) {
			server := apifake.New(t)
			state := held("a", "b")
			state.Handover = assignment.Slots{tc.slot: "c"}
			server.Put(apifake.Assigned(2, state))
			server.Put(apifake.Holding("a", 0, epoch))
			server.Put(apifake.Pod("c"))
			if got := annotation(t, server, assignment.HandoverKey); got != tc.requests || slotsOf(server) != tc.slots {
				t.Errorf("the requests are %q, want %q; the map is %s, want %s", got, tc.requests, slotsOf(server), tc.slots)
			}
		})
	}
}

// The next holder's token must be higher than any that somebody had from this clock before.
func TestTheEpochOfASweepFollowsTheClock(t *testing.T) {
	server := apifake.New(t)
	server.Put(apifake.Assigned(2, held("a")))
	before := time.Now().UnixMilli()
	if got, err := strconv.ParseInt(annotation(t, server, assignment.EpochKey), 10, 64); err != nil || got < before {
		t.Errorf("the epoch is %d, %v; the clock said %d before", got, err, before)
	}
}

func withoutLists(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/pods") {
		return false
	}
	apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd")
	return true
}

func TestASweepDecidesNothingWithoutTheLists(t *testing.T) {
	for name, tc := range map[string]struct {
		owner *unstructured.Unstructured
		slots string
	}{"an owner with a map": {apifake.Assigned(2, held("a")), onlyA}, "an owner without one": {apifake.Owner(2), ""}} {
		t.Run(name, func(t *testing.T) {
			server := apifake.New(t)
			server.Put(tc.owner)
			server.Before(withoutLists)
			got, err := Sweep(t.Context(), storeOf(t, server), theRef(), tries(2), false)
			if !store.Temporary(err) || got.Wrote || slotsOf(server) != tc.slots {
				t.Errorf("%+v, %v, the map is %s", got, err, slotsOf(server))
			}
		})
	}
}

func TestASweepOfAnOwnerThatIsDeletedMeanwhile(t *testing.T) {
	var server *apifake.Server
	server = dead(t, func(http.ResponseWriter, int) bool {
		server.Remove(apifake.Deployment, apifake.Worker)
		return false
	})
	got, err := Sweep(t.Context(), storeOf(t, server), theRef(), tries(2), false)
	if !errors.Is(err, store.ErrGone) || !strings.Contains(err.Error(), "nothing is left to free") || got.Wrote {
		t.Errorf("%+v, %v", got, err)
	}
}
