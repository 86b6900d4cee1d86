package allocator

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// atRead is an allocator whose pod has slot 0 by its receipt.
func atRead(t *testing.T) (*apifake.Server, *Allocator) {
	t.Helper()
	return publishing(t, func(identity.Identity) {})
}

// publishing is one that publishes to this function.
func publishing(t *testing.T, publish func(identity.Identity)) (*apifake.Server, *Allocator) {
	t.Helper()
	api := apifake.New(t)
	api.Put(apifake.Owner(1))
	pod := apifake.Holding("p0", 0)
	pod.SetOwnerReferences(apifake.ControlledBy(apifake.Deployment, apifake.Worker, apifake.OwnerUID))
	api.Put(pod)
	s := api.Store(t, clock.RealClock{})
	a, err := New(t.Context(), Options{Store: s, Pod: "p0", Namespace: apifake.Namespace, Log: logr.Discard(), Publish: publish})
	if err != nil {
		t.Fatal(err)
	}
	a.contact.Begin(t.Context(), a.ref, a.log)
	return api, a
}

// locking is one whose process wrote that receipt.
func locking(t *testing.T) (*Allocator, *apifake.Server) {
	t.Helper()
	api, a := atRead(t)
	if err := a.write(t.Context(), duty.Lock{State: receipt.Locks, Share: receipt.Share{ID: 0}}); err != nil {
		t.Fatal(err)
	}
	return a, api
}

// The watch shows one moment for both.
func TestAPodWhoseReceiptAndControllerChangeFindsItsOwnerAgain(t *testing.T) {
	a, _ := locking(t)
	if err := a.source.ReadOwner(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, known := a.see(); known.Unseen {
		t.Fatal("the owner is to be read again right after a read")
	}
	pod := a.pod.DeepCopy()
	pod.ResourceVersion = "999999"
	delete(pod.Annotations, receipt.Key)
	pod.OwnerReferences[0].UID = "another"
	a.hearPod(pod, true)
	if _, known := a.see(); !known.Unseen || a.state.Lock.State != receipt.Unreadable {
		t.Errorf("the owner is to be read again: %t, the lock is %+v", known.Unseen, a.state.Lock)
	}
}

// Another pod may have taken the slot while the receipt was gone, and the work of this one is being stopped.
func TestAReceiptThatIsPutBackIsNoLock(t *testing.T) {
	a, api := locking(t)
	lock := api.Get(apifake.Pods, "p0").GetAnnotations()
	for _, annotations := range []map[string]string{nil, lock} {
		api.Change(apifake.Pods, "p0", func(o *unstructured.Unstructured) { o.SetAnnotations(annotations) })
		if err := a.readPod(t.Context()); err != nil || a.state.Lock.State != receipt.Unreadable {
			t.Errorf("with the annotations %v the lock is %+v, %v", annotations, a.state.Lock, err)
		}
	}
}

// refusedOnce removes the receipt, has the pod write, which is refused, and puts the receipt back.
func refusedOnce(t *testing.T, api *apifake.Server, a *Allocator, lock duty.Lock) {
	t.Helper()
	before := api.Get(apifake.Pods, "p0").GetAnnotations()
	put := func(annotations map[string]string) {
		api.Change(apifake.Pods, "p0", func(o *unstructured.Unstructured) { o.SetAnnotations(annotations) })
	}
	put(nil)
	if err := a.write(t.Context(), lock); !errors.Is(err, request.ErrConflict) {
		t.Fatalf("a write over a receipt that is gone: %v", err)
	}
	put(before)
}

// A write that is refused shows that the receipt was gone for a moment, even if it is back before it is read. Another pod may have locked the slot
// then, so what the receipt notes does not count any more.
func TestAReceiptThatIsBackAfterARefusedWriteNotesNothing(t *testing.T) {
	for refused, holds := range map[bool]bool{false: true, true: false} {
		api, a := atRead(t)
		noted := duty.Lock{State: receipt.Locks, Share: receipt.Share{ID: 0}, Held: duty.Held{Slot: true}}
		a.work.Resume(duty.LockState{Lock: noted}, receipt.Receipt{Token: 7})
		if err := a.write(t.Context(), noted); err != nil {
			t.Fatal(err)
		}
		if refused {
			refusedOnce(t, api, a, noted)
		}
		if err := a.readPod(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a.state.Lock.Held.Slot != holds || (a.work.Token() == 7) != holds {
			t.Errorf("a write refused: %t, and the pod holds the slot: %+v with token %d", refused, a.state.Lock, a.work.Token())
		}
	}
}

// The work continues until it is known whether another pod has locked the slot. A program that is shown no token meanwhile writes nothing.
func TestWhatIsPublishedKeepsItsTokenUntilTheNextLockHasOne(t *testing.T) {
	last := identity.Identity{}
	api, a := publishing(t, func(is identity.Identity) { last = is })
	noted := duty.Lock{State: receipt.Locks, Share: receipt.Share{ID: 0}, Held: duty.Held{Slot: true}}
	a.work.Resume(duty.LockState{Lock: noted}, receipt.Receipt{Token: 7})
	a.state.Working = noted.Share
	a.work.Begun(noted.Share)
	if err := a.write(t.Context(), noted); err != nil {
		t.Fatal(err)
	}
	if a.tell(); last.Token != 7 {
		t.Fatalf("it shows %+v", last)
	}
	refusedOnce(t, api, a, noted)
	if err := a.readPod(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.tell(); !last.Assigned() || last.Token != 7 {
		t.Errorf("before the next lock has a token it shows %+v", last)
	}
}
