package census

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/test/apifake"
)

// read returns the owner, and the store that has read it.
func read(t *testing.T, server *apifake.Server) (*store.Store, store.Owner) {
	t.Helper()
	s := server.Store(t, clock.RealClock{})
	owner, err := s.GetOwner(t.Context(), apifake.Ref())
	if err != nil {
		t.Fatal(err)
	}
	return s, owner
}

func TestASurveyFindsTheOwnersPodsAndThoseWithALock(t *testing.T) {
	server := apifake.New(t)
	server.Put(apifake.Assigned(9, assignment.State{Slots: assignment.Slots{0: "a", 1: "b", 2: "dead"}}))
	server.Put(apifake.Holding("a", 0))
	server.Put(apifake.Released(apifake.Holding("b", 1)))
	server.Put(apifake.Pod("c"))
	server.Put(apifake.Released(apifake.Pod("stranger")))
	dead := apifake.Holding("dead", 2)
	dead.Object["status"] = map[string]any{"phase": "Succeeded"}
	server.Put(dead)
	s, owner := read(t, server)
	pods, err := Survey(t.Context(), s, owner)
	if err != nil || len(pods) != 3 {
		t.Fatalf("%+v, %v", pods, err)
	}
	for k, want := range []proposal.Pod{{Name: "a", Owned: true}, {Name: "b"}, {Name: "c", Owned: true}} {
		locks := pods[k].Receipt.State == receipt.Locks
		if pods[k].Name != want.Name || pods[k].Owned != want.Owned || locks != (k < 2) || !pods[k].Created.Equal(apifake.Born()) {
			t.Errorf("%+v, want %+v", pods[k], want)
		}
	}
}

func TestASurveyWithoutAnAnswerSaysNothing(t *testing.T) {
	for lost := range 2 {
		server := apifake.New(t)
		server.Put(apifake.Assigned(9, assignment.State{Slots: assignment.Slots{0: "a"}}))
		lists := 0
		server.Before(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("labelSelector") == "" {
				return false
			}
			if lists++; lists != lost+1 {
				return false
			}
			apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd")
			return true
		})
		s, owner := read(t, server)
		if pods, err := Survey(t.Context(), s, owner); !request.Temporary(err) || len(pods) > 0 {
			t.Errorf("%+v, %v", pods, err)
		}
	}
}

func TestAReceiptThatCannotBeReadLocks(t *testing.T) {
	pod := &metav1.ObjectMeta{Name: "a", UID: "u", Labels: map[string]string{receipt.IDLabel: "3"}, Annotations: map[string]string{receipt.Key: "{"}}
	if got, err := PodOf(store.Owner{}, pod, true); err == nil || !got.Receipt.LocksSlot(3) {
		t.Errorf("%+v, %v", got, err)
	}
}

// pods with an ordinal, a deadline or a controller.
func TestWhatAPodIsToAPlan(t *testing.T) {
	pod := func(name string, labels, annotations map[string]string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{Name: name, UID: "u", Labels: labels, Annotations: annotations}
	}
	deadline := metav1.NewTime(apifake.Born().Add(time.Minute))
	deleted := pod("worker-0", nil, nil)
	deleted.DeletionTimestamp = &deadline
	controlled := pod("worker-0", nil, nil)
	controlled.OwnerReferences = []metav1.OwnerReference{{UID: "other"}, {UID: "rs", Controller: new(true)}}
	index := func(n string) map[string]string { return map[string]string{kinds.PodIndexLabel: n} }
	completion := map[string]string{kinds.CompletionIndexLabel: "6"}
	for name, tc := range map[string]struct {
		kind  string
		start int
		pod   *metav1.ObjectMeta
		want  proposal.Pod
	}{
		"of a Deployment":                     {kinds.Deployment, 0, pod("worker-7", index("7"), completion), proposal.Pod{Ordinal: proposal.NoOrdinal}},
		"of a StatefulSet that starts at 5":   {kinds.StatefulSet, 5, pod("worker-7", nil, nil), proposal.Pod{Ordinal: 2}},
		"one from before it was moved":        {kinds.StatefulSet, 5, pod("worker-3", nil, nil), proposal.Pod{Ordinal: proposal.NoOrdinal}},
		"of a Job, by its annotation":         {kinds.Job, 0, pod("worker-abc", nil, completion), proposal.Pod{Ordinal: 6}},
		"that is being deleted":               {kinds.Deployment, 0, deleted, proposal.Pod{Ordinal: proposal.NoOrdinal, Terminating: true, Deadline: deadline.Time}},
		"with a controller and another owner": {kinds.Deployment, 0, controlled, proposal.Pod{Ordinal: proposal.NoOrdinal, Controller: "rs"}},
	} {
		t.Run(name, func(t *testing.T) {
			ref, err := kinds.ParseRef(tc.kind+"/worker", "")
			if err != nil {
				t.Fatal(err)
			}
			owner := store.Owner{Ref: ref, OrdinalStart: tc.start}
			for _, owned := range []bool{true, false} {
				want := tc.want
				want.Name, want.UID, want.Owned, want.Receipt.Share = tc.pod.Name, "u", owned, receipt.Nothing()
				got, err := PodOf(owner, tc.pod, owned)
				if err != nil || !slices.Equal([]any{got.Ordinal, got.Deadline, got.Controller, got.Owned, got.Terminating},
					[]any{want.Ordinal, want.Deadline, want.Controller, want.Owned, want.Terminating}) {
					t.Errorf("%+v, want %+v, %v", got, want, err)
				}
			}
		})
	}
}

// Two workloads may select one pod. Only the chain of its controllers says whose it is.
func TestWhatAPodLocksOfItsFormerOwnerIsLocked(t *testing.T) {
	for kind, moves := range map[string]bool{apifake.Deployment: true, "Other": false} {
		server := apifake.New(t)
		server.Put(apifake.Owner(9))
		set := apifake.ReplicaSet("set", "1")
		set.SetOwnerReferences(apifake.ControlledBy(kind, apifake.Worker, apifake.OwnerUID))
		server.Put(set)
		pod := apifake.Holding("a", 0)
		pod.SetOwnerReferences(apifake.ControlledBy(kinds.ReplicaSet, "set", "set"))
		pod.SetAnnotations(map[string]string{receipt.Key: receipt.Receipt{UID: string(pod.GetUID()), Owner: "ReplicaSet/set", State: receipt.Locks, Write: "w"}.Encode()})
		server.Put(pod)
		s, owner := read(t, server)
		if pods, err := Survey(t.Context(), s, owner); err != nil || len(pods) != 1 || pods[0].Receipt.LocksSlot(0) != moves {
			t.Errorf("%s: %+v, %v", kind, pods, err)
		}
	}
}

// A pod with the labels that the owner selects may be another owner's. A false alarm would be worse than none.
func TestAPodOfAnotherOwnerIsForeignAlthoughTheSelectorMatchesIt(t *testing.T) {
	by := func(kind, name string) []metav1.OwnerReference {
		return apifake.ControlledBy(kind, name, types.UID(name))
	}
	for name, tc := range map[string]struct {
		pod, set []metav1.OwnerReference
		want     bool
		reads    int
	}{
		"no controller":                             {nil, nil, false, 0},
		"the owner's ReplicaSet, by its name":       {by(kinds.ReplicaSet, "worker-5d9"), by(apifake.Deployment, "other"), false, 0},
		"one that the owner has adopted":            {by(kinds.ReplicaSet, "other-5d9"), by(apifake.Deployment, apifake.Worker), false, 1},
		"one that it may be about to adopt":         {by(kinds.ReplicaSet, "other-5d9"), nil, false, 1},
		"one that is gone":                          {by(kinds.ReplicaSet, "gone-5d9"), nil, false, 1},
		"another Deployment's ReplicaSet":           {by(kinds.ReplicaSet, "other-5d9"), by(apifake.Deployment, "other"), true, 1},
		"a ReplicaSet of what idalloc cannot count": {by(kinds.ReplicaSet, "other-5d9"), by("Other", "other"), true, 1},
		"a StatefulSet":                             {by(kinds.StatefulSet, apifake.Worker), nil, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := apifake.New(t)
			server.Put(apifake.Owner(9))
			for _, set := range []string{"worker-5d9", "other-5d9"} {
				o := apifake.ReplicaSet(set, "1")
				o.SetOwnerReferences(tc.set)
				server.Put(o)
			}
			for id, name := range []string{"a", "b"} {
				pod := apifake.Holding(name, id)
				pod.SetOwnerReferences(tc.pod)
				labels := pod.GetLabels()
				labels["pod-template-hash"] = "5d9"
				pod.SetLabels(labels)
				server.Put(pod)
			}
			s, owner := read(t, server)
			reads := 0
			server.Before(func(_ http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.Path, "/replicasets/") {
					reads++
				}
				return false
			})
			pods, err := Survey(t.Context(), s, owner)
			if err != nil || len(pods) != 2 || pods[0].Foreign != tc.want || pods[1].Foreign != tc.want || reads != tc.reads {
				t.Errorf("%+v, %v, after %d reads; want foreign %t after %d", pods, err, reads, tc.want, tc.reads)
			}
		})
	}
	for kind, want := range map[string]bool{kinds.StatefulSet: false, kinds.ReplicaSet: true} {
		pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{OwnerReferences: by(kind, apifake.Worker)}}
		if owner := (store.Owner{Ref: kinds.Ref{APIVersion: apifake.Apps, Kind: kinds.StatefulSet, Name: apifake.Worker}}); suspect(owner, pod) != want {
			t.Errorf("a pod of a %s with the name of the StatefulSet: foreign %t, want %t", kind, !want, want)
		}
	}
}
