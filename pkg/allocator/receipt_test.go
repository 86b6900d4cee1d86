package allocator

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/partition/placement"
	"github.com/idalloc/idalloc/test/apifake"
)

// A write of an earlier process of the pod may come late. What it says, that partitions are yielded or that the slot is given, a
// planner may act on already.
func TestTheFirstReceiptDoesNotHideWhatAnEarlierProcessWroteLate(t *testing.T) {
	server := apifake.New(t)
	server.Put(apifake.Owner(1))
	before := assignment.Receipt{UID: string(apifake.UIDOf("worker-0")), Owner: "Deployment/" + apifake.Worker, ID: 0, Epoch: 1795219000007}
	two := placement.Of(2)
	before.Partitions = &two
	pod := apifake.Pod("worker-0")
	setReceipt(pod, before)
	server.Put(pod)
	s, err := store.New(server.Config(), "", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(t.Context(), Options{Store: s, Pod: "worker-0", Namespace: apifake.Namespace, Log: logr.Discard(), Publish: func(identity.Identity) {}})
	if err != nil {
		t.Fatal(err)
	}
	late := before
	late.Partitions, late.Yields = &placement.Set{}, two
	server.Change("Pod", "worker-0", func(o *unstructured.Unstructured) { setReceipt(o, late) })

	next := before
	next.Epoch++
	if err := a.firstReceipt(t.Context(), &next); !errors.Is(err, errLateReceipt) {
		t.Fatalf("it returns %v", err)
	}
	if r := a.receipt(); !r.Yields.Equal(two) {
		t.Errorf("the process knows of %+v", r)
	}
	if err := a.firstReceipt(t.Context(), &next); err != nil {
		t.Errorf("made from what is there now: %v", err)
	}
	server.Change("Pod", "worker-0", func(o *unstructured.Unstructured) { setReceipt(o, late) })
	next.Epoch++
	if err := a.firstReceipt(t.Context(), &next); err != nil {
		t.Errorf("after a write of its own, which no late write outlives: %v", err)
	}
	if got := receiptOn(server); got != "0 at +2" {
		t.Errorf("the receipt is %s", got)
	}
}

// The answer of this process's own write may be lost, too.
func TestAReceiptThatIsThereAlreadyIsNotLate(t *testing.T) {
	server := shop(t, apifake.Owner(1), lockedAt(me, 0))
	a := startedOn(t, server, Options{})
	next := *a.receipt()
	next.Epoch++
	server.Change(apifake.Pods, me, func(o *unstructured.Unstructured) { setReceipt(o, next) })
	if err := a.firstReceipt(t.Context(), &next); err != nil {
		t.Error(err)
	}
}

// An earlier process of the pod may have sent the same bytes, so they say nothing of when they were written.
func TestTheFirstReceiptIsWrittenEvenIfItIsThereAlready(t *testing.T) {
	server := shop(t, apifake.Owner(1), lockedAt(me, 0))
	a := startedOn(t, server, Options{})
	before := server.Get(apifake.Pods, me).GetAnnotations()[assignment.ReceiptKey]
	if err := a.writeReceipt(t.Context(), a.receipt()); err != nil {
		t.Fatal(err)
	}
	first := server.Get(apifake.Pods, me).GetAnnotations()[assignment.ReceiptKey]
	if first == before {
		t.Error("the first write changed no byte")
	}
	if err := a.writeReceipt(t.Context(), a.receipt()); err != nil {
		t.Fatal(err)
	}
	if second := server.Get(apifake.Pods, me).GetAnnotations()[assignment.ReceiptKey]; second != first {
		t.Error("the second one changed some")
	}
}

func TestAReceiptIsWrittenWhateverIsThere(t *testing.T) {
	server := shop(t, apifake.Owner(1), lockedAt(me, 0))
	a := startedOn(t, server, Options{})
	server.Change(apifake.Pods, me, func(o *unstructured.Unstructured) {
		setReceipt(o, assignment.Receipt{UID: a.PodUID(), Owner: a.ref.String(), Waits: true})
	})
	if err := a.writeReceipt(t.Context(), &assignment.Receipt{UID: a.PodUID(), Owner: a.ref.String(), ID: 1, Epoch: epoch}); err != nil {
		t.Error(err)
	}
	if got := receiptOn(server); got != "1 at +0" {
		t.Errorf("the receipt is %s", got)
	}
}

// A pod of a StatefulSet has the name of the one before it.
func TestAProcessWhosePodIsGoneIsTold(t *testing.T) {
	successor := lockedAt(me, 0)
	successor.SetUID("another")
	for name, now := range map[string]*unstructured.Unstructured{"no pod has its name": nil, "another pod has its name": successor} {
		for what, do := range map[string]func(*Allocator) error{
			"reads": func(a *Allocator) error { return a.readPod(t.Context()) },
			"writes": func(a *Allocator) error {
				return a.writeReceipt(t.Context(), &assignment.Receipt{UID: a.PodUID(), Owner: a.ref.String(), ID: 1, Epoch: epoch})
			},
			"writes, and the API server speaks of a conflict": func(a *Allocator) error { return a.showLife(t.Context()) },
		} {
			t.Run(name+", and it "+what, func(t *testing.T) {
				server := shop(t, apifake.Owner(1), bare())
				a := startedOn(t, server, Options{})
				server.Remove(apifake.Pods, me)
				if now != nil {
					server.Put(now)
				}
				conflicts := strings.Contains(what, "conflict")
				server.Before(func(w http.ResponseWriter, r *http.Request) bool {
					if conflicts && r.Method == http.MethodPatch {
						apifake.Refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "conflict")
						return true
					}
					return false
				})
				if err := do(a); !errors.Is(err, ErrPodGone) {
					t.Errorf("it hears %v", err)
				}
				if now != nil && server.Get(apifake.Pods, me).GetAnnotations()[assignment.ReceiptKey] != now.GetAnnotations()[assignment.ReceiptKey] {
					t.Error("it changed the other pod")
				}
			})
		}
	}
}

// Others see by it that the program runs.
func TestAWaiterShowsThatItLivesOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     *unstructured.Unstructured
		receipt string
		writes  int
	}{
		"no receipt": {bare(), "waits, failed 0", 1},
		"a lock":     {lockedAt(me, 0), "0 at -5", 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := shop(t, apifake.Owner(1), tc.pod)
			a := startedOn(t, server, Options{})
			server.Requests()
			for range 2 {
				if err := a.showLife(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := receiptOn(server); got != tc.receipt {
				t.Errorf("the receipt is %s, want %s", got, tc.receipt)
			}
			if n := len(server.Requests()); n != tc.writes {
				t.Errorf("%d requests, want %d", n, tc.writes)
			}
		})
	}
}

// What a pod yields a planner may be giving away already. So the pod takes a slot only by a write of its own, also as its next process.
func TestWhoYieldsGivesUpWithItsSlot(t *testing.T) {
	two := placement.Of(2)
	for name, tc := range map[string]struct {
		yields  placement.Set
		bare    bool
		failed  int
		receipt string
	}{
		"it yields":                      {yields: two, receipt: "gave up, failed 0"},
		"it yields, and its work failed": {yields: two, failed: 1, receipt: "gave up, failed 1"},
		"it yields nothing":              {receipt: "none"},
		"its work failed":                {failed: 1, receipt: "waits, failed 1"},
		"it has no receipt":              {bare: true, receipt: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := bare()
			if !tc.bare {
				setReceipt(pod, assignment.Receipt{
					UID: string(apifake.UIDOf(me)), Owner: "Deployment/" + apifake.Worker, Epoch: epoch, Partitions: &placement.Set{}, Yields: tc.yields, Failed: tc.failed,
				})
			}
			server := shop(t, apifake.Owner(1), pod)
			a := startedOn(t, server, Options{})
			if err := a.writeReceipt(t.Context(), a.noYields(a.noSlotReceipt())); err != nil {
				t.Fatal(err)
			}
			got := receiptOn(server)
			if got == "gave up" {
				got = fmt.Sprintf("gave up, failed %d", a.receipt().Failures())
			}
			if got != tc.receipt {
				t.Errorf("the receipt is %s, want %s", got, tc.receipt)
			}
		})
	}
}

// If the receipt is removed after that, the next process goes by what is published. That must not name what is yielded.
func TestWhatIsYieldedIsNotPublishedAnyMore(t *testing.T) {
	server := apifake.New(t)
	server.Put(apifake.Owner(1))
	pod, locked := apifake.Pod("worker-0"), placement.Between(0, 3)
	setReceipt(pod, assignment.Receipt{UID: string(apifake.UIDOf("worker-0")), Owner: "Deployment/" + apifake.Worker, Epoch: 1795219000007, Partitions: &locked})
	server.Put(pod)
	s, err := store.New(server.Config(), "", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	shown := placement.Set{}
	a, err := New(t.Context(), Options{
		Store: s, Pod: "worker-0", Namespace: apifake.Namespace, Log: logr.Discard(), Publish: func(identity.Identity) {},
		Partitions: &Partitions{Publish: func(now Shares) {
			shown = placement.Set{}
			for _, share := range now.Owned {
				shown = shown.Union(share.Set)
			}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &holding{Allocator: a}
	a.held = &held{view: owning(placement.Owners{0: locked})}
	a.shares.add(locked, a.held.view.Record.State)
	server.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && shown.String() != "0-1" {
			t.Errorf("the receipt is written while %q is published", shown)
		}
		return false
	})
	if err := h.yield(t.Context(), placement.Between(2, 3)); err != nil {
		t.Fatal(err)
	}
	if r := a.receipt(); r.Yields.String() != "2-3" || r.Partitions.String() != "0-1" {
		t.Errorf("the receipt is %s", r.Encode())
	}
}

func setReceipt(o *unstructured.Unstructured, r assignment.Receipt) {
	o.SetAnnotations(map[string]string{assignment.ReceiptKey: r.Encode()})
}
