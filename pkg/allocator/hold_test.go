package allocator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// inVain is how long a test waits for what has to come.
const inVain = 20 * time.Second

// holder is this process while it runs on a server with watches, from the moment at which it holds slot 0.
type holder struct {
	t      *testing.T
	server *apifake.Server
	a      *Allocator
	end    context.CancelFunc
	told   chan identity.Identity
	// asked gets the context of each wait for the end of the work. What is sent to stopped ends the wait.
	asked   chan context.Context
	stopped chan error
	over    chan struct{}
	err     error // what Run returned, when over is closed

	mu sync.Mutex
	// locks is the receipt at the moment at which each state was told last.
	locks map[identity.State]string
}

// holds starts this process where the map names it, beside other pods.
func holds(t *testing.T, count int64, pods ...*unstructured.Unstructured) *holder {
	t.Helper()
	server := shop(t, apifake.Assigned(count, naming(me, epoch)), append([]*unstructured.Unstructured{bare()}, pods...)...)
	h := &holder{
		t: t, server: server, told: make(chan identity.Identity, 100), asked: make(chan context.Context, 100), stopped: make(chan error), over: make(chan struct{}),
		locks: map[identity.State]string{},
	}
	s, err := store.New(server.Config(), "", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Store: s, Pod: me, Namespace: apifake.Namespace, Log: logr.Discard(), Publish: h.publish, Stopped: h.wait}
	if h.a, err = New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h.end = cancel
	go func() {
		defer close(h.over)
		h.err = h.a.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-h.over
	})
	h.hears(identity.StateAssigned, 0, int(count))
	return h
}

func (h *holder) publish(id identity.Identity) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.locks[id.State] = receiptOn(h.server)
	h.told <- id
}

func (h *holder) wait(ctx context.Context) error {
	h.asked <- ctx
	select {
	case err := <-h.stopped:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hears waits for the next identity. The token is that of the map at first.
func (h *holder) hears(state identity.State, id, count int) {
	h.t.Helper()
	select {
	case got := <-h.told:
		want := identity.Identity{State: state, ID: id, Count: count}
		if id != identity.None {
			want.Epoch = epoch
		}
		if fmt.Sprint(got.State, got.ID, got.Count, got.Epoch) != fmt.Sprint(want.State, want.ID, want.Count, want.Epoch) {
			h.t.Fatalf("it is told %+v, want %+v", got, want)
		}
	case <-time.After(inVain):
		h.t.Fatalf("it is not told that it is %s", state)
	}
}

// hearsNothing ends Run, and sees that nothing was told meanwhile.
func (h *holder) hearsNothing() {
	h.t.Helper()
	h.end()
	<-h.over
	select {
	case got := <-h.told:
		h.t.Errorf("it is told %+v", got)
	default:
	}
}

// asks waits until the process asks whether the work has stopped.
func (h *holder) asks() context.Context {
	h.t.Helper()
	select {
	case ctx := <-h.asked:
		return ctx
	case <-time.After(inVain):
		h.t.Fatal("it does not wait for the end of the work")
		return nil
	}
}

// await waits until the server's objects are as they have to be.
func (h *holder) await(what string, is func() bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), inVain)
	defer cancel()
	if !h.server.Await(ctx, is) {
		h.t.Fatalf("in vain: %s; the receipt is %s, the assignment %s", what, receiptOn(h.server), h.slots())
	}
}

func (h *holder) receipt() string { return receiptOn(h.server) }

// slots is the assignment as it is stored.
func (h *holder) slots() string {
	return h.server.Get(apifake.Deployment, apifake.Worker).GetAnnotations()[assignment.DefaultKey]
}

// owner changes the owner, as somebody else does.
func (h *holder) owner(do func(o *unstructured.Unstructured)) {
	h.server.Change(apifake.Deployment, apifake.Worker, do)
}

// scale has a user change the count.
func (h *holder) scale(count int64) {
	h.owner(func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, count, "spec", "replicas"); err != nil {
			h.t.Error(err)
		}
	})
}

// pod changes this process's pod, as somebody else does.
func (h *holder) pod(do func(o *unstructured.Unstructured)) {
	h.server.Change(apifake.Pods, me, do)
}

func TestAHolderHearsOfTheCount(t *testing.T) {
	h := holds(t, 2)
	h.scale(4)
	h.hears(identity.StateAssigned, 0, 4)
	h.scale(1)
	h.hears(identity.StateAssigned, 0, 1)
	h.hearsNothing()
	if !errors.Is(h.err, context.Canceled) {
		t.Errorf("it ends with %v", h.err)
	}
	if got := h.receipt(); got != locked {
		t.Errorf("the slot is kept when the process is told to end, and the receipt is %s", got)
	}
}

// Above the count, the slot is given when the work has stopped, and not before.
func TestAHolderAboveTheCountGivesWhenTheWorkHasStopped(t *testing.T) {
	h := holds(t, 2)
	h.scale(0)
	h.hears(identity.StateDraining, identity.None, 0)
	h.asks()
	if got, slots := h.receipt(), h.slots(); got != locked || slots != `{"0":"`+me+`"}` {
		t.Errorf("the work goes on, the receipt is %s, and the assignment %s", got, slots)
	}
	h.stopped <- nil
	h.hears(identity.StatePending, identity.None, 0)
	if got := h.slots(); got != "{}" {
		t.Errorf("the work has stopped, and the assignment is %s", got)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := h.locks[identity.StatePending]; got != gives {
		t.Errorf("the receipt is %s when the slot is given", got)
	}
}

func TestAHolderGoesOnIfTheCountRisesBeforeTheWorkHasStopped(t *testing.T) {
	h := holds(t, 1)
	h.scale(0)
	h.hears(identity.StateDraining, identity.None, 0)
	waits := h.asks()
	h.scale(1)
	h.hears(identity.StateAssigned, 0, 1)
	select {
	case <-waits.Done():
	case <-time.After(inVain):
		t.Error("it still waits for the end of the work")
	}
	h.scale(0)
	h.hears(identity.StateDraining, identity.None, 0)
	h.asks()
	if got := h.receipt(); got != locked {
		t.Errorf("the receipt is %s", got)
	}
}

func TestAHolderWhoseWorkDoesNotStopKeepsTheSlot(t *testing.T) {
	h := holds(t, 1)
	h.scale(0)
	h.hears(identity.StateDraining, identity.None, 0)
	h.asks()
	h.stopped <- errors.New("it does not stop")
	h.asks() // again
	if got, slots := h.receipt(), h.slots(); got != locked || slots != `{"0":"`+me+`"}` {
		t.Errorf("the receipt is %s, and the assignment %s", got, slots)
	}
	h.scale(1)
	h.hears(identity.StateAssigned, 0, 1)
}

func TestAHolderWhoseSlotIsAnotherPodsLosesItAtOnce(t *testing.T) {
	for name, untracked := range map[string]bool{"a map of idalloc": false, "a map that nobody tracks": true} {
		t.Run(name, func(t *testing.T) {
			h := holds(t, 1, apifake.Pod(other))
			taken := apifake.Assigned(1, naming(other, epoch+3))
			if untracked {
				apifake.Untracked(taken)
			}
			h.server.Put(taken)
			h.hears(identity.StateLost, identity.None, 1)
			h.mu.Lock()
			if got := h.locks[identity.StateLost]; got != locked {
				t.Errorf("the receipt is %s when the id is lost", got)
			}
			h.mu.Unlock()
			if untracked {
				// The plan decides: this pod has a receipt and the other one has none.
				h.hears(identity.StatePending, identity.None, 1)
				h.await("the pod with the lock has the slot", func() bool { return h.slots() == `{"0":"`+me+`"}` })
				return
			}
			h.await("the receipt is withdrawn", func() bool { return h.receipt() == "none" })
		})
	}
}

func TestAHolderWhoseReceiptIsGoneTakesTheIDAgain(t *testing.T) {
	h := holds(t, 1)
	h.pod(func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
	h.hears(identity.StateLost, identity.None, 1)
	h.hears(identity.StateAssigned, 0, 1)
	if got := h.receipt(); got != locked {
		t.Errorf("the receipt is %s", got)
	}
}

func TestAHolderWhoseLabelsAreGoneWritesThemAgain(t *testing.T) {
	for _, label := range []string{assignment.InstanceIDLabel, assignment.OwnerLabel} {
		t.Run(label, func(t *testing.T) {
			h := holds(t, 1)
			h.pod(func(o *unstructured.Unstructured) {
				labels := o.GetLabels()
				delete(labels, label)
				o.SetLabels(labels)
			})
			h.await("the label is back", func() bool { return h.server.Get(apifake.Pods, me).GetLabels()[label] != "" })
			h.hearsNothing()
		})
	}
}

func TestAHolderDoesNotMindChangesOfItsPodThatSayNothingOfTheSlot(t *testing.T) {
	h := holds(t, 1)
	h.pod(func(o *unstructured.Unstructured) {
		a := o.GetAnnotations()
		a["example.com/note"] = "seen"
		o.SetAnnotations(a)
	})
	h.scale(2)
	h.hears(identity.StateAssigned, 0, 2)
	h.hearsNothing()
}

func TestAHolderEndsWithItsPod(t *testing.T) {
	for name, end := range map[string]func(h *holder){
		"it is gone":               func(h *holder) { h.server.Remove(apifake.Pods, me) },
		"another pod has its name": func(h *holder) { succeed(h.server) },
	} {
		t.Run(name, func(t *testing.T) {
			h := holds(t, 1)
			end(h)
			h.hears(identity.StateLost, identity.None, 1)
			<-h.over
			if !errors.Is(h.err, ErrPodGone) {
				t.Errorf("it ends with %v", h.err)
			}
		})
	}
}

func TestAHolderKeepsItsIDWithoutAnOwner(t *testing.T) {
	h := holds(t, 1)
	owner := h.server.Get(apifake.Deployment, apifake.Worker)
	h.server.Remove(apifake.Deployment, apifake.Worker)
	if err := unstructured.SetNestedField(owner.Object, int64(3), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	h.server.Put(owner)
	h.hears(identity.StateAssigned, 0, 3)
	h.hearsNothing()
}

// What somebody else makes of the map is restored, and the holder's work is not disturbed.
func TestAHolderRestoresTheMap(t *testing.T) {
	for name, damage := range map[string]func(a map[string]string){
		"without its entry":    func(a map[string]string) { a[assignment.DefaultKey] = "{}" },
		"for a pod unheard of": func(a map[string]string) { a[assignment.DefaultKey] = `{"0":"nobody"}` },
		"with a broken seal":   func(a map[string]string) { a[assignment.SealKey] = "1:2:3" },
		"without anything":     func(a map[string]string) { clear(a) },
	} {
		t.Run(name, func(t *testing.T) {
			h := holds(t, 1)
			h.owner(func(o *unstructured.Unstructured) {
				a := o.GetAnnotations()
				damage(a)
				o.SetAnnotations(a)
			})
			h.await("the map is as it was", func() bool {
				o, err := h.a.store.Get(t.Context(), h.a.ref)
				return err == nil && o.Clean() && o.Names(0, me, apifake.UIDOf(me))
			})
			h.hearsNothing()
			if got := h.receipt(); got != locked {
				t.Errorf("the receipt is %s", got)
			}
		})
	}
}

// refuseOnce has the server fail at the first read of this process's pod.
func refuseOnce(refused *atomic.Bool) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/pods/"+me) || refused.Swap(true) {
			return false
		}
		apifake.Refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "not now")
		return true
	}
}

// A refusal of the one request that would tell is no news of the pod.
func TestAHolderLooksAgainWhenItsPodCannotBeRead(t *testing.T) {
	h := holds(t, 1)
	var refused atomic.Bool
	h.server.Before(refuseOnce(&refused))
	h.pod(func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
	h.hears(identity.StateLost, identity.None, 1)
	h.hears(identity.StateAssigned, 0, 1)
	if !refused.Load() {
		t.Error("it did not read its pod")
	}
}
