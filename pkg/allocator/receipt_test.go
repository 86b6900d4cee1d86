package allocator

import (
	"errors"
	"net/http"
	"testing"

	"github.com/go-logr/logr"
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
	server.Change("v1", "Pod", "worker-0", func(o *unstructured.Unstructured) { setReceipt(o, late) })

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
	server.Change("v1", "Pod", "worker-0", func(o *unstructured.Unstructured) { setReceipt(o, late) })
	if err := a.firstReceipt(t.Context(), &next); err != nil {
		t.Errorf("after a write of its own, which no late write outlives: %v", err)
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
