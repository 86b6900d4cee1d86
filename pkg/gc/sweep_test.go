package gc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/test/apifake"
)

const (
	onlyA   = `{"0":"a"}`
	itsGone = "its pod is gone"
)

// held is a state in which pods of these names have the slots from 0 on.
func held(names ...string) assignment.State {
	s := assignment.State{Slots: assignment.Slots{}}
	for id, name := range names {
		s.Slots[id] = name
	}
	return s
}

// crowd adds an annotation of this size.
func crowd(o *unstructured.Unstructured, size int) *unstructured.Unstructured {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["team"] = strings.Repeat("x", size)
	o.SetAnnotations(annotations)
	return o
}

// lost is the holder of slot 0, "a", that has outlived its grace period.
func lost(strict bool) *unstructured.Unstructured {
	o := apifake.Holding("a", 0)
	apifake.Says(o, receipt.Receipt{State: receipt.Locks, Strict: strict})
	deadline := metav1.NewTime(apifake.Born())
	o.SetDeletionTimestamp(&deadline)
	return o
}

// slotsOf is what the Deployment's map says now.
func slotsOf(server *apifake.Server) string {
	if server.Get(apifake.Deployment, apifake.Worker) == nil {
		return ""
	}
	return server.Get(apifake.Deployment, apifake.Worker).GetAnnotations()[assignment.Key]
}

// tries is a backoff for so many tries again, one after the other.
func tries(n int) wait.Backoff { return wait.Backoff{Steps: n} }

func TestSweep(t *testing.T) {
	damaged := apifake.Assigned(2, held("b"))
	damaged.SetAnnotations(map[string]string{assignment.Key: "{"})
	crowded := crowd(apifake.Assigned(3, held("a", "b")), 261_800)
	full := crowd(apifake.Owner(2), 262_000)
	failed, evicted := apifake.Pod("b"), apifake.Pod("c")
	failed.Object["status"] = map[string]any{"phase": "Failed"}
	evicted.Object["status"] = map[string]any{"phase": "Failed", "reason": "Evicted"}
	strict := lost(true)
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
			owner: apifake.Assigned(3, held("a", "b")), pods: []*unstructured.Unstructured{apifake.Holding("a", 0), apifake.Pod("c")},
			want: Result{Victims: []Victim{{ID: 1, Pod: "b", Reason: itsGone}}, Wrote: true}, slots: onlyA,
		},
		"says how they ended": {
			owner: apifake.Assigned(3, held("a", "b", "c")), pods: []*unstructured.Unstructured{apifake.Holding("a", 0), failed, evicted},
			want: Result{Victims: []Victim{{1, "b", "its pod is Failed"}, {2, "c", "its pod is Failed (Evicted)"}}, Wrote: true}, slots: onlyA,
		},
		"only looks": {
			owner: apifake.Assigned(3, held("a", "b")), pods: []*unstructured.Unstructured{apifake.Holding("a", 0)}, dry: true,
			want: Result{Victims: []Victim{{ID: 1, Pod: "b", Reason: itsGone}}}, slots: `{"0":"a","1":"b"}`,
		},
		"has nothing to do": {
			owner: apifake.Assigned(3, held("a")), pods: []*unstructured.Unstructured{apifake.Holding("a", 0)}, slots: onlyA,
		},
		"leaves alone who may still take its slot": {
			owner: apifake.Assigned(3, held("a")), pods: []*unstructured.Unstructured{apifake.Pod("a")}, slots: onlyA,
		},
		"keeps the slot of a pod that was relabelled": {
			owner: apifake.Assigned(3, held("a")), pods: []*unstructured.Unstructured{apifake.Released(apifake.Holding("a", 0))}, slots: onlyA,
		},
		"leaves alone who never used idalloc": {owner: apifake.Owner(3), pods: []*unstructured.Unstructured{apifake.Pod("a")}},
		"restores what the receipts say": {
			owner: apifake.Owner(3), pods: []*unstructured.Unstructured{apifake.Holding("a", 0)}, want: Result{Restored: true, Wrote: true}, slots: onlyA,
		},
		"only looks at what the receipts say": {
			owner: apifake.Owner(3), pods: []*unstructured.Unstructured{apifake.Holding("a", 0)}, dry: true, want: Result{Restored: true},
		},
		"restores a map that cannot be read": {
			owner: damaged, pods: []*unstructured.Unstructured{apifake.Holding("a", 0)}, want: Result{Restored: true, Wrote: true}, slots: onlyA,
		},
		"rewrites a map that cannot be read though nothing is held": {owner: damaged, want: Result{Restored: true, Wrote: true}, slots: "{}"},
		"frees the slot of a strict pod that outlived its grace period": {
			owner: apifake.Assigned(2, held("a")), pods: []*unstructured.Unstructured{strict},
			want: Result{Victims: []Victim{{0, "a", "its pod has outlived its grace period, and the Lease of the slot protects what it may still do"}}, Wrote: true}, slots: "{}",
		},
		"keeps that of one that is not strict": {owner: apifake.Assigned(2, held("a")), pods: []*unstructured.Unstructured{lost(false)}, slots: onlyA},
		"frees the dead where there is no room for more": {
			owner: crowded, pods: []*unstructured.Unstructured{apifake.Holding("a", 0)},
			want: Result{Victims: []Victim{{ID: 1, Pod: "b", Reason: itsGone}}, Wrote: true}, slots: onlyA,
		},
		"has no owner":                      {fails: request.ErrGone},
		"finds no room":                     {owner: full, pods: []*unstructured.Unstructured{apifake.Holding("a", 0)}, full: true},
		"only looks where there is no room": {owner: full, pods: []*unstructured.Unstructured{apifake.Holding("a", 0)}, dry: true, full: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := apifake.New(t)
			if tc.owner != nil {
				server.Put(tc.owner)
			}
			for _, pod := range tc.pods {
				server.Put(pod)
			}
			got, err := Sweep(t.Context(), server.Store(t, clock.RealClock{}), apifake.Ref(), tries(1), tc.dry)
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
			got, err := Sweep(t.Context(), server.Store(t, clock.RealClock{}), apifake.Ref(), tries(tc.tries), false)
			if tc.fails != errors.Is(err, request.ErrConflict) || tc.fails != (err != nil) || got.Wrote == tc.fails {
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
		if got, err := Sweep(t.Context(), server.Store(t, clock.RealClock{}), apifake.Ref(), tries(5), false); err == nil || patches != 1 || got.Wrote {
			t.Errorf("%+v, %v after %d writes", got, err, patches)
		}
	})
	t.Run("no longer than its context", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		end := errors.New("enough")
		server := dead(t, func(w http.ResponseWriter, _ int) bool { cancel(end); return conflict(w) })
		slow := wait.Backoff{Steps: 5, Duration: time.Hour}
		if _, err := Sweep(ctx, server.Store(t, clock.RealClock{}), apifake.Ref(), slow, false); !errors.Is(err, end) {
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
			server.Put(apifake.Assigned(2, assignment.State{Slots: assignment.Slots{}}))
			return lost(w)
		})
		got, err := Sweep(t.Context(), server.Store(t, clock.RealClock{}), apifake.Ref(), tries(2), false)
		if err != nil || !got.Wrote || fmt.Sprint(got.Victims) != fmt.Sprint(freed) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("it had not", func(t *testing.T) {
		server := dead(t, func(w http.ResponseWriter, patch int) bool { return patch == 1 && lost(w) })
		got, err := Sweep(t.Context(), server.Store(t, clock.RealClock{}), apifake.Ref(), tries(2), false)
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
	got, err := Sweep(t.Context(), server.Store(t, clock.RealClock{}), apifake.Ref(), tries(2), false)
	if err != nil || !got.Wrote || len(got.Victims) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// annotation is what the Deployment says under the key after a sweep.
func annotation(t *testing.T, server *apifake.Server, key string) string {
	t.Helper()
	if got, err := Sweep(t.Context(), server.Store(t, clock.RealClock{}), apifake.Ref(), tries(1), false); err != nil || !got.Wrote {
		t.Fatalf("%+v, %v", got, err)
	}
	return server.Get(apifake.Deployment, apifake.Worker).GetAnnotations()[key]
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
			server.Put(apifake.Holding("a", 0))
			server.Put(apifake.Pod("c"))
			if got := annotation(t, server, assignment.HandoverKey); got != tc.requests || slotsOf(server) != tc.slots {
				t.Errorf("the requests are %q, want %q; the map is %s, want %s", got, tc.requests, slotsOf(server), tc.slots)
			}
		})
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
			got, err := Sweep(t.Context(), server.Store(t, clock.RealClock{}), apifake.Ref(), tries(2), false)
			if !request.Temporary(err) || got.Wrote || slotsOf(server) != tc.slots {
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
	got, err := Sweep(t.Context(), server.Store(t, clock.RealClock{}), apifake.Ref(), tries(2), false)
	if !errors.Is(err, request.ErrGone) || !strings.Contains(err.Error(), "nothing is left to free") || got.Wrote {
		t.Errorf("%+v, %v", got, err)
	}
}
