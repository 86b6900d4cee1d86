package allocator

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

const (
	me, other = "worker-0", "worker-1"
	// epoch is that of the map at first.
	epoch  = 1795219000007
	strict = 30 * time.Second
	// locked is the receipt for slot 0 at that epoch.
	locked = "0 at +0"
	// gives is the receipt that gives it.
	gives = "gives 0"
)

// naming is a map that gives slot 0 to a pod. All maps here obey strict processes.
func naming(pod string, at int64) assignment.State {
	return assignment.State{
		Slots: assignment.Slots{0: pod}, UIDs: assignment.Slots{0: assignment.ShortUID(string(apifake.UIDOf(pod)))}, Epoch: at, FenceAfter: strict,
	}
}

// lockedAt is a pod with a receipt for a slot.
func lockedAt(pod string, id int) *unstructured.Unstructured {
	return apifake.Holding(pod, id, epoch-5)
}

// bare is this process's pod without a receipt.
func bare() *unstructured.Unstructured {
	o, yes := apifake.Pod(me), true
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apifake.Apps, Kind: store.ReplicaSet, Name: "worker-5d9", UID: "r", Controller: &yes}})
	return o
}

// shop is a server with the Deployment, its ReplicaSet and pods.
func shop(t *testing.T, owner *unstructured.Unstructured, pods ...*unstructured.Unstructured) *apifake.Server {
	t.Helper()
	server, yes := apifake.New(t), true
	rs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apifake.Apps, "kind": store.ReplicaSet, "metadata": map[string]any{"name": "worker-5d9", "uid": "r"}}}
	rs.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apifake.Apps, Kind: apifake.Deployment, Name: apifake.Worker, UID: apifake.OwnerUID, Controller: &yes}})
	for _, o := range append([]*unstructured.Unstructured{owner, rs}, pods...) {
		server.Put(o)
	}
	return server
}

// succeed has another pod come with the name of this process's.
func succeed(server *apifake.Server) {
	pod := server.Get(apifake.Pods, me)
	pod.SetUID("another")
	server.Put(pod)
}

// forget has the server forget who wrote the map, as it does when more than ten managers write later.
func forget(server *apifake.Server) {
	o := server.Get(apifake.Deployment, apifake.Worker)
	entries := o.GetManagedFields()
	entries[0].Manager = "ancient-changes"
	o.SetManagedFields(entries)
	server.Put(o)
}

// startedOn is this process on a server.
func startedOn(t *testing.T, server *apifake.Server, o Options) *Allocator {
	t.Helper()
	s, err := store.New(server.Config(), "", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	o.Store, o.Pod, o.Namespace, o.Log, o.Publish = s, me, apifake.Namespace, logr.Discard(), func(identity.Identity) {}
	a, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// afterReceipt calls do once, when this process has written its receipt and is about to make the next request for the owner.
func afterReceipt(server *apifake.Server, do func()) {
	wrote := false
	server.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/pods/"+me):
			wrote = true
		case wrote && do != nil && strings.HasSuffix(r.URL.Path, "/"+apifake.Worker):
			do()
			do = nil
		}
		return false
	})
}

// receiptOn tells the receipt that is on the pod, and its epoch beside epoch.
func receiptOn(server *apifake.Server) string {
	pod := server.Get(apifake.Pods, me)
	if pod == nil {
		return "no pod"
	}
	r, err := assignment.ReceiptOf(pod.GetAnnotations(), string(apifake.UIDOf(me)), apifake.Deployment+"/"+apifake.Worker, assignment.AnyTime())
	switch {
	case err != nil:
		return err.Error()
	case r == nil:
		return "none"
	case r.GaveUp && r.Gives:
		return fmt.Sprintf("gives %d", r.ID)
	case r.GaveUp:
		return "gave up"
	case r.Waits:
		return fmt.Sprintf("waits, failed %d", r.Failed)
	}
	return fmt.Sprintf("%d at %+d", r.ID, r.Epoch-epoch)
}

// Anything may happen between the receipt and the last read of the owner.
func TestATakeIsConfirmedByTheOwnerAfterTheReceipt(t *testing.T) {
	replace := func(s *apifake.Server, o *unstructured.Unstructured) { s.Put(o) }
	edit := func(s *apifake.Server) { // by somebody else
		s.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
			a := o.GetAnnotations()
			a[assignment.DefaultKey] = `{"0":"nobody"}`
			o.SetAnnotations(a)
		})
	}
	untrack := func(s *apifake.Server) {
		s.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) { apifake.Untracked(o) })
	}
	upgrade := func(s *apifake.Server) { // by a newer idalloc, which has the same field manager
		o := s.Get(apifake.Deployment, apifake.Worker)
		a := o.GetAnnotations()
		a[assignment.SealKey] = "2:later"
		o.SetAnnotations(a)
		s.Put(o)
	}
	anew := apifake.Owner(2)
	anew.SetUID("another")
	anew.SetAnnotations(naming(me, epoch).Encode(assignment.DefaultKey, "another"))
	apifake.Managed(anew, map[string][]string{assignment.FieldManager: slices.Collect(maps.Keys(anew.GetAnnotations()))})
	waiter := lockedAt(other, 0)
	setReceipt(waiter, assignment.Receipt{UID: string(apifake.UIDOf(other)), Owner: "Deployment/" + apifake.Worker, Waits: true})
	slow := &handClock{at: time.Hour}
	for name, tc := range map[string]struct {
		pods      []*unstructured.Unstructured // this one is there in any case
		untracked bool                         // and the process has written the map
		strict    bool
		meanwhile func(s *apifake.Server)
		token     int64  // less epoch, if the slot is held
		receipt   string // afterwards
		lost      bool
		err       error
	}{
		"nothing":                           {receipt: locked},
		"a write for others":                {meanwhile: func(s *apifake.Server) { replace(s, apifake.Assigned(2, naming(me, epoch+3))) }, token: 3, receipt: "0 at +3"},
		"the slot went to another pod":      {meanwhile: func(s *apifake.Server) { replace(s, apifake.Assigned(2, naming(other, epoch+3))) }, lost: true, receipt: "none"},
		"somebody edited the map":           {meanwhile: edit, lost: true, receipt: "none"},
		"and an earlier process may act":    {pods: []*unstructured.Unstructured{lockedAt(me, 0)}, meanwhile: edit, lost: true, receipt: locked},
		"and an earlier one had another id": {pods: []*unstructured.Unstructured{lockedAt(me, 1)}, meanwhile: edit, lost: true, receipt: "none"},
		"a newer idalloc wrote the map":     {meanwhile: upgrade, err: store.ErrNewer, lost: true, receipt: "none"},
		"a newer one did, and an earlier process may act": {
			pods: []*unstructured.Unstructured{lockedAt(me, 0)}, meanwhile: upgrade, err: store.ErrNewer, lost: true, receipt: locked,
		},
		"the slot of the earlier process went to another pod": { // the next try withdraws it
			pods:      []*unstructured.Unstructured{lockedAt(me, 0)},
			meanwhile: func(s *apifake.Server) { replace(s, apifake.Assigned(2, naming(other, epoch+3))) }, lost: true, receipt: locked,
		},
		"the owner was deleted":           {meanwhile: func(s *apifake.Server) { s.Remove(apifake.Deployment, apifake.Worker) }, err: store.ErrGone, lost: true, receipt: locked},
		"another owner has its name":      {meanwhile: func(s *apifake.Server) { replace(s, anew) }, lost: true, receipt: "none"},
		"the server forgot who wrote it":  {meanwhile: forget, lost: true, receipt: "none"},
		"nobody tracks it any more":       {meanwhile: untrack, lost: true, receipt: "none"},
		"nobody tracks it":                {untracked: true, receipt: locked},
		"nobody tracks it, other slots":   {untracked: true, pods: []*unstructured.Unstructured{lockedAt(other, 1)}, receipt: locked},
		"nobody tracks it, its own lock":  {untracked: true, pods: []*unstructured.Unstructured{lockedAt(me, 0)}, receipt: locked},
		"nobody tracks it, and one waits": {untracked: true, pods: []*unstructured.Unstructured{waiter}, receipt: locked},
		"nobody tracks it, two locks":     {untracked: true, pods: []*unstructured.Unstructured{lockedAt(other, 0)}, lost: true, receipt: "none"},
		"nobody tracks it, three locks":   {untracked: true, pods: []*unstructured.Unstructured{lockedAt(me, 0), lockedAt(other, 0)}, lost: true, receipt: locked},
		"nobody tracks it, and a write":   {untracked: true, meanwhile: func(s *apifake.Server) { replace(s, apifake.Assigned(2, naming(me, epoch+3))); untrack(s) }, lost: true, receipt: "none"},
		"nobody tracks it, a write, and an earlier process may act": {
			untracked: true, pods: []*unstructured.Unstructured{lockedAt(me, 0)}, lost: true, receipt: locked,
			meanwhile: func(s *apifake.Server) { replace(s, apifake.Assigned(2, naming(me, epoch+3))); untrack(s) },
		},
		"it is tracked again, and an earlier process may act": {
			untracked: true, pods: []*unstructured.Unstructured{lockedAt(me, 0)}, lost: true, receipt: locked,
			meanwhile: func(s *apifake.Server) { replace(s, apifake.Assigned(2, naming(me, epoch+3))) },
		},
		"it is tracked again":            {untracked: true, meanwhile: func(s *apifake.Server) { replace(s, apifake.Assigned(2, naming(me, epoch))) }, lost: true, receipt: "none"},
		"strict, and the answer is slow": {strict: true, meanwhile: func(*apifake.Server) { slow.at += strict - 1 }, receipt: locked},
		"strict, and others would not wait": {strict: true, lost: true, receipt: "none", meanwhile: func(s *apifake.Server) {
			short := naming(me, epoch+3)
			short.FenceAfter = strict - time.Second
			replace(s, apifake.Assigned(2, short))
		}},
		"strict, and it is too slow": {strict: true, meanwhile: func(*apifake.Server) { slow.at += strict }, lost: true, receipt: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			server := shop(t, apifake.Assigned(2, naming(me, epoch)), append([]*unstructured.Unstructured{bare()}, tc.pods...)...)
			if tc.untracked {
				untrack(server)
			}
			o := Options{}
			if tc.strict {
				o.FenceAfter = strict
			}
			a := startedOn(t, server, o)
			a.strict.boot = slow
			from, err := a.readOwner(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tc.meanwhile != nil {
				afterReceipt(server, func() { tc.meanwhile(server) })
			}
			if err := a.take(t.Context(), from, 0, tc.untracked); !errors.Is(err, tc.err) {
				t.Errorf("it returns %v", err)
			}
			switch {
			case tc.lost != (a.held == nil):
				t.Errorf("the slot is held: %t", a.held != nil)
			case a.held != nil && a.held.token != epoch+tc.token:
				t.Errorf("the token is %d, want %d", a.held.token, epoch+tc.token)
			}
			if got := receiptOn(server); got != tc.receipt {
				t.Errorf("the receipt is %s, want %s", got, tc.receipt)
			}
		})
	}
}

// G2 comes before G3, and another pod may do G3.
func TestAGiveSaysSoOnTheReceiptBeforeTheMapLosesTheEntry(t *testing.T) {
	none := assignment.State{Slots: assignment.Slots{}, UIDs: assignment.Slots{}, Epoch: epoch + 3}
	for name, tc := range map[string]struct {
		pod       *unstructured.Unstructured
		intent    plan.Intent
		meanwhile func(s *apifake.Server)
		receipt   string
		writes    int // of the owner, by this process
		err       error
	}{
		"by itself":                      {pod: lockedAt(me, 0), intent: plan.Release, receipt: gives, writes: 1},
		"another pod took the entry out": {pod: lockedAt(me, 0), intent: plan.Release, meanwhile: func(s *apifake.Server) { s.Put(apifake.Assigned(2, none)) }, receipt: gives},
		"somebody else emptied the map": {
			pod: lockedAt(me, 0), intent: plan.Release, receipt: gives, writes: 1,
			meanwhile: func(s *apifake.Server) {
				s.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
					a := o.GetAnnotations()
					a[assignment.DefaultKey] = "{}"
					o.SetAnnotations(a)
				})
			},
		},
		"it was named and took nothing": {pod: bare(), intent: plan.Release, receipt: "gave up", writes: 1},
		"somebody else writes the owner": {
			pod: lockedAt(me, 0), intent: plan.Release, receipt: gives, writes: 2,
			meanwhile: func(s *apifake.Server) { crossed(s) },
		},
		"the owner is gone, and the pod ends": {
			pod: lockedAt(me, 0), intent: plan.Release, receipt: gives, err: store.ErrGone,
			meanwhile: func(s *apifake.Server) { s.Remove(apifake.Deployment, apifake.Worker) },
		},
		"the owner is gone, and the pod moves": {
			pod: lockedAt(me, 0), intent: plan.Move, receipt: gives,
			meanwhile: func(s *apifake.Server) { s.Remove(apifake.Deployment, apifake.Worker) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := shop(t, apifake.Assigned(2, naming(me, epoch)), tc.pod)
			a := startedOn(t, server, Options{})
			if tc.meanwhile != nil {
				afterReceipt(server, func() { tc.meanwhile(server) })
			}
			defer a.follow(t.Context())()
			server.Requests()
			if _, err := a.give(t.Context(), tc.intent, 0); !errors.Is(err, tc.err) {
				t.Errorf("it returns %v", err)
			}
			if got := receiptOn(server); got != tc.receipt {
				t.Errorf("the receipt is %s, want %s", got, tc.receipt)
			}
			requests, write := server.Requests(), "PATCH deployments/"+apifake.Worker
			if first := slices.Index(requests, write); first >= 0 && first < slices.Index(requests, "PATCH pods/"+me) {
				t.Errorf("the map loses the entry first: %q", requests)
			}
			if n := len(requests) - len(slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return r == write })); n != tc.writes {
				t.Errorf("%d writes of the owner, want %d: %q", n, tc.writes, requests)
			}
			if owner := server.Get(apifake.Deployment, apifake.Worker); tc.err == nil && tc.intent == plan.Release &&
				strings.Contains(owner.GetAnnotations()[assignment.DefaultKey], me) {
				t.Errorf("the map still names the pod: %s", owner.GetAnnotations()[assignment.DefaultKey])
			}
		})
	}
}

// crossed has somebody else change the owner's spec right before this process's first write of it.
func crossed(s *apifake.Server) {
	done := false
	s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/"+apifake.Worker) && !done {
			done = true
			s.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
				o.Object["spec"].(map[string]any)["paused"] = true //nolint:errcheck,forcetypeassert // apifake made it
			})
		}
		return false
	})
}
