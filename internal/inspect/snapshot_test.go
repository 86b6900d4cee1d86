package inspect

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

// verify must find a pod's ordinal in the same place as the planner.
func TestAPodHasTheOrdinalThatThePlannerSees(t *testing.T) {
	const index, completion = "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index"
	for name, tc := range map[string]struct {
		owner               store.Owner
		pod                 string
		labels, annotations map[string]string
		want                int
	}{
		"counted from the first":          {store.Owner{Ref: kinds.Ref{APIVersion: "apps/v1", Kind: kinds.StatefulSet}, OrdinalStart: 3}, "worker-4", nil, nil, 1},
		"by its annotation":               {store.Owner{Ref: kinds.Ref{APIVersion: "batch/v1", Kind: kinds.Job}}, "worker-x", nil, map[string]string{completion: "2"}, 2},
		"a Deployment's, whatever it has": {store.Owner{Ref: kinds.Ref{APIVersion: "apps/v1", Kind: kinds.Deployment}}, "worker-4", map[string]string{index: "4"}, nil, proposal.NoOrdinal},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetName(tc.pod)
		u.SetLabels(tc.labels)
		u.SetAnnotations(tc.annotations)
		if got := newPod(u, tc.owner, true).Ordinal; got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// A canary is a Deployment of its own, whose pods have the labels that the first one selects, too.
func TestAnotherWorkloadsPodDoesNotWaitHere(t *testing.T) {
	for name, tc := range map[string]struct {
		kind                 string
		controller, template string
		waits                bool
	}{
		"a pod of this Deployment": {kinds.Deployment, "worker-5d9", "5d9", true},
		"a canary":                 {kinds.Deployment, "worker-canary-5d9", "5d9", false},
		"a ReplicaSet that the Deployment adopted":   {kinds.Deployment, "older", "", true},
		"a pod that its controller has released":     {kinds.Deployment, "", "5d9", true},
		"a pod of this StatefulSet":                  {kinds.StatefulSet, worker, "", true},
		"a StatefulSet with the same labels":         {kinds.StatefulSet, "worker-canary", "", false},
		"a Deployment whose name begins like this's": {kinds.Deployment, "worker-5d9-7c4", "7c4", false},
	} {
		n := settledPods(1)
		n.owner.Kind = tc.kind
		n.add("z")
		n.edit("z", func(p *pod) { p.controller, p.template = tc.controller, tc.template })
		if got := len(n.view().Waiting) == 1; got != tc.waits {
			t.Errorf("%s: it waits: %t", name, got)
		}
		if got := reported(n).Waiting == 1; got != tc.waits {
			t.Errorf("%s: verify says that it waits: %t", name, got)
		}
	}
}

// A Deployment was deleted without its pods, and a Deployment of another name selects them. Their ReplicaSet keeps its name.
func TestThePodsOfAnAdoptedReplicaSetWait(t *testing.T) {
	for name, tc := range map[string]struct {
		controller, kind, hash string
		waits                  int
	}{
		"adopted":               {apifake.OwnerUID, kinds.Deployment, "pod-template-hash", 1},
		"of another Deployment": {"u", kinds.Deployment, "pod-template-hash", 0},
		"of a Rollout":          {"u", "Rollout", "rollouts-pod-template-hash", 0},
		"no controller, or one that cannot be seen": {"", "", "pod-template-hash", 0},
	} {
		server := apifake.New(t)
		server.Put(apifake.Owner(1))
		if tc.controller != "" {
			rs := apifake.ReplicaSet("former-5d9", "1")
			rs.SetOwnerReferences(apifake.ControlledBy(tc.kind, "x", types.UID(tc.controller)))
			server.Put(rs)
		}
		p := apifake.Pod("former-5d9-x")
		p.SetLabels(map[string]string{"app": apifake.Worker, tc.hash: "5d9"})
		p.SetOwnerReferences(apifake.ControlledBy(kinds.ReplicaSet, "former-5d9", "rs"))
		server.Put(p)
		s := server.Store(t, clocktesting.NewFakeClock(apifake.Born()))
		v, err := Read(t.Context(), s, apifake.Ref())
		if err != nil || len(v.Waiting) != tc.waits {
			t.Errorf("%s: %v wait, %v", name, v.Waiting, err)
		}
	}
}

// A pod whose receipt is for another owner has a trace of idalloc, and locks nothing here. One with another pod's UID has none.
func TestAReceiptForAnotherOwnerIsSeen(t *testing.T) {
	owner := store.Owner{Ref: kinds.Ref{Kind: kinds.Deployment, Name: worker}}
	for text, want := range map[string]bool{
		`{"uid":"u","owner":"ReplicaSet/worker-5d9","id":4,"write":"w"}`:     true,
		`{"uid":"other","owner":"ReplicaSet/worker-5d9","id":4,"write":"w"}`: false,
		`{"uid":"u","owner":"Deployment/worker","id":4,"write":"w"}`:         false,
		`{`: false,
	} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetUID("u")
		u.SetAnnotations(map[string]string{receipt.Key: text})
		p := newPod(u, owner, true)
		if got := p.elsewhere.State == receipt.Locks && p.elsewhere.Share.ID == 4; got != want || want && (!p.sign() || p.Receipt.Slot() != receipt.NoID) {
			t.Errorf("%s: elsewhere %+v, here slot %d", text, p.elsewhere, p.Receipt.Slot())
		}
	}
}

// A controller's write of the status is not one of what the owner says.
func TestAChangeIsNoStatus(t *testing.T) {
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
	fields := []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Time: at(10)}, {Manager: "kubectl", Subresource: "scale", Time: at(30)}, {Manager: "idalloc", Time: at(20)},
		{Manager: "kube-controller-manager", Subresource: "status", Time: at(40)}, {Manager: "old"},
	}
	if got := lastChange(fields); !got.Equal(time.Unix(30, 0)) {
		t.Errorf("the last change was at %s", got)
	}
}

// A program reads states of its own, whatever the word in the table is.
func TestARowOfAPodThatEndsIsHeldForPrograms(t *testing.T) {
	n := settledPods(2)
	n.add("z")
	n.edit("b", func(p *pod) { p.Terminating = true })
	v := n.view()
	if slot := v.Slots[1]; slot.State != Held || !slot.Terminating || slot.Pod != "b" || len(v.Waiting) != 1 {
		t.Errorf("%+v, %v wait", slot, v.Waiting)
	}
}
