package lease_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/lease"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// shared is one API server for the Guards of several pods.
type shared struct {
	*testing.T

	store *store.Store
	ref   kinds.Ref
}

func share(t *testing.T) shared {
	t.Helper()
	st, err := store.New(&rest.Config{Host: "http://server.invalid", QPS: -1, Transport: server.NewStandalone()}, machine{booted: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	ref, _ := kinds.NewRef("apps/v1", "Deployment", server.Namespace, "worker")
	return shared{t, st, ref}
}

func (s shared) guard(pod string) *lease.Guard {
	g := lease.New(lease.Options{
		Store: s.store, Pace: pace.New(func() float64 { return 0 }), Pod: pod, After: 30 * time.Second,
		Fenced: func(time.Duration) {}, News: func() {}, Contact: func(event.Contact) {},
	})
	g.Begin(s.Context(), s.ref, types.UID(pod+"-uid"))
	return g
}

func (s shared) get(id int) slotlease.Lease {
	s.Helper()
	l, err := s.store.GetLease(s.Context(), s.ref, id)
	if err != nil {
		s.Fatal(err)
	}
	return l
}

func (s shared) secure(g *lease.Guard, id int) {
	s.Helper()
	if _, left, err := g.Secure(s.Context(), receipt.Share{ID: id}); err != nil || left > 0 {
		s.Fatalf("no Lease: %s, %v", left, err)
	}
}

// A write that was sent before the Lease was deleted cannot bring it back, whether it was made again or not.
func TestALeaseThatIsLetGoForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t)
		g := s.guard("worker-0")
		s.secure(g, 3)
		late := s.get(3)
		if err := g.LetGo(t.Context(), 3, true); err != nil {
			t.Fatal(err)
		}
		if l := s.get(3); l.Version != "" {
			t.Errorf("it stays: %+v", l)
		}
		if err := g.LetGo(t.Context(), 3, true); err != nil || s.get(3).Version != "" {
			t.Errorf("once more: %v", err)
		}
		for _, made := range []bool{false, true} {
			if made {
				s.secure(g, 3)
			}
			if _, err := s.store.PutLease(t.Context(), s.ref, late); !errors.Is(err, request.ErrConflict) {
				t.Errorf("a late renewal (made again: %t): %v", made, err)
			}
			if err := s.store.DeleteLease(t.Context(), s.ref, late); made && !errors.Is(err, request.ErrConflict) || !made && err != nil {
				t.Errorf("a late deletion (made again: %t): %v", made, err)
			}
		}
		if s.get(3).Holder != "worker-0-uid" {
			t.Errorf("a late write has taken it: %+v", s.get(3))
		}
		g.Forget()
		g.Wait()
	})
}

// What a Lease locks is taken again after a while, and not at once, whether its holder says its name or not.
func TestALeaseWhoseHolderHasNoNameBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t)
		own := s.guard("own")
		s.secure(own, 0)
		if _, err := s.store.PutLease(t.Context(), s.ref, slotlease.Lease{ID: 3, Holder: "uid", Lasts: time.Hour}); err != nil {
			t.Fatal(err)
		}
		mine := receipt.Share{ID: 0, Of: 4, Partitions: placement.Of(1)}
		if others, by, err := own.Survey(t.Context(), mine); err != nil || !others.Partitions.Equal(mine.Partitions) || by != "uid" {
			t.Errorf("%v: %q locks %v", err, by, others)
		}
		own.Wait()
	})
}

// A pod deletes only what it could take: what no pod has, and what has not been renewed for long enough by its own clock.
func TestLeasesThatAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t)
		own, lost, renews := s.guard("own"), s.guard("lost"), s.guard("renews")
		for id, g := range []*lease.Guard{own, lost, renews} {
			s.secure(g, id)
		}
		lost.Wait()
		if _, err := s.store.PutLease(t.Context(), s.ref, slotlease.Lease{ID: 3}); err != nil {
			t.Fatal(err)
		}
		left, err := own.Clear(t.Context(), 0)
		if want := s.get(1).Outlasts(); err != nil || left != want || s.get(3).Version != "" || s.get(1).Version == "" {
			t.Errorf("%v: looks again after %s, want %s; Leases %+v", err, left, want, []slotlease.Lease{s.get(1), s.get(3)})
		}
		<-time.After(left - 1)
		if again, err := own.Clear(t.Context(), 0); err != nil || again != 1 || s.get(1).Version == "" {
			t.Errorf("%v: looks again after %s, and its time is over in a moment: %+v", err, again, s.get(1))
		}
		<-time.After(1)
		if _, err := own.Clear(t.Context(), 2); err != nil || s.get(1).Version == "" {
			t.Errorf("%v: slot 1 is the owner's: %+v", err, s.get(1))
		}
		if left, err := own.Clear(t.Context(), 0); err != nil || left <= 0 || s.get(1).Version != "" || s.get(0).Version == "" || s.get(2).Version == "" {
			t.Errorf("%v: looks again after %s; Leases %+v", err, left, []slotlease.Lease{s.get(0), s.get(1), s.get(2)})
		}
		own.Wait()
		renews.Wait()
	})
}

// A creation that had no answer may arrive when its pod has another slot. No pod renews such a Lease, and its own pod may be the one to delete it.
func TestALeaseOfAnotherSlotThatIsThisPodsIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t)
		own := s.guard("own")
		s.secure(own, 0)
		made := s.get(0)
		made.ID, made.Version, made.UID = 3, "", ""
		if _, err := s.store.PutLease(t.Context(), s.ref, made); err != nil {
			t.Fatal(err)
		}
		left, err := own.Clear(t.Context(), 0)
		if err != nil || left <= 0 || s.get(3).Version == "" {
			t.Errorf("%v: looks again after %s; Lease %+v", err, left, s.get(3))
		}
		<-time.After(left)
		if left, err := own.Clear(t.Context(), 0); err != nil || left != 0 || s.get(3).Version != "" || s.get(0).Version == "" {
			t.Errorf("%v: looks again after %s; Leases %+v", err, left, []slotlease.Lease{s.get(0), s.get(3)})
		}
		own.Wait()
	})
}

// What another pod has is lost. The API server refused nothing.
func TestALostLeaseIsNotOneWhoseRenewalIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t)
		g := s.guard("own")
		s.secure(g, 0)
		next := s.get(0)
		next.Holder, next.Pod = "other-uid", "other"
		if _, err := s.store.PutLease(t.Context(), s.ref, next); err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.Survey(t.Context(), receipt.Share{}); err != nil || !g.Over() || g.Why() == "" {
			t.Fatalf("%v: not lost", err)
		}
		if why := g.Refused(); why != nil {
			t.Errorf("refused: %v", why)
		}
		g.Wait()
	})
}
