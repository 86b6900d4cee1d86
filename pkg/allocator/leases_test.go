package allocator_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
	"github.com/idalloc/idalloc/test/apifake"
)

func (b *bench) leaseOf(id int) *unstructured.Unstructured {
	return b.api.Get("Lease", slotlease.Name("Deployment/worker", id))
}

// leases has the Leases of slot 1, which no pod has, and of slot 2, which a lost pod has.
func (b *bench) leases(t *testing.T) {
	t.Helper()
	s := b.api.Store(t, clock.RealClock{})
	for _, l := range []slotlease.Lease{{ID: 1}, {ID: 2, Holder: "lost-uid", Pod: "lost", Lasts: 5 * time.Second}} {
		if _, err := s.PutLease(t.Context(), apifake.Ref(), l); err != nil {
			t.Fatal(err)
		}
	}
}

// A pod that moves below the count leaves no Lease, and a holder deletes those that others left.
func TestLeasesOfSlotsAboveTheCountGo(t *testing.T) {
	b := newBench(t, 1)
	b.leases(t)
	b.works("p0", strict)
	b.await("the Leases that others left go", func() bool { return b.leaseOf(1) == nil && b.leaseOf(2) == nil })
	b.scale(0)
	b.until("no id", has())
	b.await("its own goes", func() bool { return b.leaseOf(0) == nil })
}

// The map gives the lowest id to a pod that never starts.
func TestLeasesOfSlotsAboveTheCountGoAlthoughAPodNeverStarts(t *testing.T) {
	b := newBench(t, 2)
	b.leases(t)
	b.pod("p0")
	b.annotate(map[string]string{assignment.Key: `{"0":"p0"}`})
	b.works("p1", strict)
	b.until("the other id", has(1))
	b.await("the Lease that another left goes", func() bool { return b.leaseOf(2) == nil })
}

// A Role from before may not permit to delete. Then Leases stay, and work continues.
func TestAPodThatMayNotDeleteLeasesWorksOn(t *testing.T) {
	b := newBench(t, 1)
	b.leases(t)
	refused, tried := b.refuse(http.StatusForbidden, metav1.StatusReasonForbidden, `User "worker" cannot delete resource "leases"`, asks(http.MethodDelete, "/leases/"))
	refused.Store(true)
	b.works("p0", strict)
	<-tried
	b.until("still the id", has(0))
	b.scale(0)
	b.until("no id", has())
	b.await("its own is free", func() bool {
		l := b.leaseOf(0)
		return l != nil && !strings.Contains(fmt.Sprint(l.Object["spec"]), "holderIdentity")
	})
	b.scale(1)
	b.until("the id again", has(0))
}

// p0 noted its slot before it was strict. A strict pod that came later has the Lease, and finds p0's receipt only now.
func TestAHolderThatBecomesStrictDoesNotGiveWayToALease(t *testing.T) {
	b := newBench(t, 1)
	doze(b)
	p0 := b.works("p0", nil)
	b.await("the receipt says that it holds the slot", b.noted(false))
	p0.kill()
	s := b.api.Store(t, clock.RealClock{})
	later, err := s.PutLease(t.Context(), apifake.Ref(), slotlease.Lease{ID: 0, Holder: "p1-uid", Pod: "p1", Lasts: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	blocked := make(chan struct{}, 1)
	b.start("p0", func(o *allocator.Options) {
		o.FenceAfter = allocator.MinFenceAfter
		o.Observer = observer(func(e event.Event) {
			switch e := e.(type) {
			case event.NotTaken:
				note(blocked, struct{}{})
			case event.Given:
				t.Errorf("it gives slot %d away", e.ID)
			}
		})
	})
	<-blocked
	if _, err := s.PutLease(t.Context(), apifake.Ref(), slotlease.Lease{ID: 0, Version: later.Version, UID: later.UID}); err != nil {
		t.Fatal(err)
	}
	b.until("the id again", has(0))
}

// A pod that renews its Lease again and again has not found p0's receipt: another client had hidden that.
func TestAHolderThatBecomesStrictGivesWayToALeaseThatStays(t *testing.T) {
	b := newBench(t, 1)
	doze(b)
	p0 := b.works("p0", nil)
	b.await("the receipt says that it holds the slot", b.noted(false))
	p0.kill()
	s := b.api.Store(t, clock.RealClock{})
	l, err := s.PutLease(t.Context(), apifake.Ref(), slotlease.Lease{ID: 0, Holder: "p1-uid", Pod: "p1", Lasts: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if asks(http.MethodGet, "/leases/")(r) {
			b.api.Change("Lease", slotlease.Name("Deployment/worker", l.ID), func(o *unstructured.Unstructured) {
				o.SetLabels(map[string]string{"renewed": receipt.Draw()})
			})
		}
		return false
	})
	b.start("p0", strict)
	b.await("it gives way", func() bool { return b.says("p0", receipt.Waits) })
}
