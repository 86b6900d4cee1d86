package allocator

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition/placement"
	"github.com/idalloc/idalloc/test/apifake"
)

// claiming is a claim of this process.
func claiming(a *Allocator) *claimer {
	return &claimer{Allocator: a, retry: a.pace.Backoff(), contenders: 1}
}

// withReceipt is this process's pod with a receipt.
func withReceipt(r assignment.Receipt) *unstructured.Unstructured {
	o := bare()
	r.UID, r.Owner = string(apifake.UIDOf(me)), "Deployment/"+apifake.Worker
	setReceipt(o, r)
	return o
}

func TestAClaimWritesTheOwnerOnlyIfItMustNotTrustTheMap(t *testing.T) {
	short := naming(me, epoch)
	short.FenceAfter = strict - time.Second
	for name, tc := range map[string]struct {
		owner   *unstructured.Unstructured
		pod     *unstructured.Unstructured
		strict  bool
		stopped error
		writes  int // of the owner
		holds   bool
		receipt string // if it does not hold the slot
		asked   int    // how often the work was asked to stop
		err     error
	}{
		"the map names it":             {owner: apifake.Assigned(1, naming(me, epoch)), pod: bare(), holds: true},
		"a slot is free":               {owner: apifake.Assigned(1, empty(0)), pod: bare(), writes: 1, holds: true},
		"there is no map":              {owner: apifake.Owner(1), pod: bare(), writes: 1, holds: true},
		"it gave its slot up":          {owner: apifake.Assigned(1, naming(me, epoch)), pod: withReceipt(assignment.Receipt{GaveUp: true}), writes: 1, holds: true},
		"somebody edited the map":      {owner: edited(naming(me, epoch)), pod: bare(), writes: 1, holds: true},
		"others would not wait for it": {owner: apifake.Assigned(1, short), pod: bare(), strict: true, writes: 1, holds: true},
		"others would wait for it":     {owner: apifake.Assigned(1, naming(me, epoch)), pod: bare(), strict: true, holds: true},
		"it follows a strict process":  {owner: apifake.Assigned(1, naming(me, epoch)), pod: withReceipt(assignment.Receipt{Epoch: epoch, FenceAfter: strict, Failed: 2}), receipt: "gave up", asked: 1},
		"and that one's work goes on":  {owner: apifake.Assigned(1, naming(me, epoch)), pod: withReceipt(assignment.Receipt{Epoch: epoch, FenceAfter: strict}), stopped: errors.New("not yet"), receipt: locked, asked: 1},
		"it is strict, as the one was": {owner: apifake.Assigned(1, naming(me, epoch)), pod: withReceipt(assignment.Receipt{Epoch: epoch, FenceAfter: strict}), strict: true, holds: true},
		"its owner is gone":            {pod: bare(), receipt: "none", err: store.ErrGone},
	} {
		t.Run(name, func(t *testing.T) {
			server, asked := shop(t, apifake.Owner(1), tc.pod), 0
			o := Options{Stopped: func(context.Context) error { asked++; return tc.stopped }}
			if tc.strict {
				o.FenceAfter = strict
			}
			a := startedOn(t, server, o)
			defer a.follow(t.Context())()
			if server.Remove(apifake.Deployment, apifake.Worker); tc.owner != nil {
				server.Put(tc.owner)
			}
			server.Requests()
			failed := a.receipt().Failures()
			if err := claiming(a).try(t.Context()); !errors.Is(err, tc.err) {
				t.Errorf("it returns %v", err)
			}
			writes := len(slices.DeleteFunc(server.Requests(), func(r string) bool { return r != writesOwner }))
			if writes != tc.writes || asked != tc.asked || tc.holds != (a.held != nil) {
				t.Errorf("it holds the slot: %t, after %d writes; the work was asked to stop %d times", a.held != nil, writes, asked)
			}
			if got := receiptOn(server); !tc.holds && got != tc.receipt {
				t.Errorf("the receipt is %s, want %s", got, tc.receipt)
			}
			if r := a.receipt(); r.Failures() != failed {
				t.Errorf("it remembers %d failures, want %d", r.Failures(), failed)
			}
		})
	}
}

// edited is a map that somebody else wrote last, in the same bytes.
func edited(state assignment.State) *unstructured.Unstructured {
	o := apifake.Assigned(1, state)
	entries := o.GetManagedFields()
	entries[0].Manager = "helm"
	o.SetManagedFields(entries)
	return o
}

// The receipt locks a slot that this pod does not act under, so nobody could have it.
func TestAReceiptForAnotherPodsSlotIsWithdrawn(t *testing.T) {
	two := placement.Of(2)
	for name, tc := range map[string]struct {
		owner   *unstructured.Unstructured
		pod     *unstructured.Unstructured
		receipt string
	}{
		"another pod has the slot":         {apifake.Assigned(1, naming(other, epoch)), withReceipt(assignment.Receipt{Epoch: epoch}), "none"},
		"and its own work had failed":      {apifake.Assigned(1, naming(other, epoch)), withReceipt(assignment.Receipt{Epoch: epoch, Failed: 1}), "waits, failed 1"},
		"and it yielded partitions":        {apifake.Assigned(1, naming(other, epoch)), withReceipt(assignment.Receipt{Epoch: epoch, Partitions: &placement.Set{}, Yields: two}), "gave up"},
		"this pod has the slot":            {apifake.Assigned(1, naming(me, epoch)), withReceipt(assignment.Receipt{Epoch: epoch}), locked},
		"nobody has the slot":              {apifake.Assigned(1, empty(0)), withReceipt(assignment.Receipt{Epoch: epoch}), locked},
		"somebody edited the map":          {edited(naming(other, epoch)), withReceipt(assignment.Receipt{Epoch: epoch}), locked},
		"it gives that slot":               {apifake.Assigned(1, naming(other, epoch)), withReceipt(assignment.Receipt{GaveUp: true, Gives: true}), gives},
		"a pod of its name had it, not it": {apifake.Assigned(1, ofAnother(me)), withReceipt(assignment.Receipt{Epoch: epoch}), "none"},
	} {
		t.Run(name, func(t *testing.T) {
			server := shop(t, tc.owner, tc.pod)
			a := startedOn(t, server, Options{})
			owner, err := a.readOwner(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := claiming(a).withdrawLost(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			if got := receiptOn(server); got != tc.receipt {
				t.Errorf("the receipt is %s, want %s", got, tc.receipt)
			}
		})
	}
}

// ofAnother is a map that gives slot 0 to a pod of this name with another UID.
func ofAnother(name string) assignment.State {
	s := naming(name, epoch)
	s.UIDs = assignment.Slots{0: assignment.ShortUID("another")}
	return s
}

// Work of an earlier process may go on under the slot.
func TestAStrandedReceiptIsWithdrawnWhenTheWorkHasStopped(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     *unstructured.Unstructured
		stopped error
		asked   int
		receipt string
	}{
		"the work has stopped": {pod: withReceipt(assignment.Receipt{Epoch: epoch}), asked: 1, receipt: "none"},
		"the work goes on":     {pod: withReceipt(assignment.Receipt{Epoch: epoch}), stopped: errors.New("not yet"), asked: 1, receipt: locked},
	} {
		t.Run(name, func(t *testing.T) {
			server, asked := shop(t, apifake.Owner(1), tc.pod), 0
			a := startedOn(t, server, Options{Stopped: func(context.Context) error { asked++; return tc.stopped }})
			a.shares.left = placement.Of(3)
			if err := claiming(a).withdrawStranded(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := receiptOn(server); got != tc.receipt || asked != tc.asked {
				t.Errorf("the receipt is %s, and the work was asked to stop %d times", got, asked)
			}
			if stopped := tc.receipt == "none"; stopped != a.shares.left.Empty() {
				t.Errorf("work may go on on partitions %q", a.shares.left)
			}
		})
	}
}

func TestAClaimEndsAsItSays(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(s *apifake.Server)
		cancelled bool
		err       error
		result    event.ClaimResult
		conflicts int
	}{
		"with a slot":                          {result: event.ClaimTaken},
		"with a slot, although others wrote":   {meanwhile: crossed, result: event.ClaimTaken, conflicts: 1},
		"without, because the process is done": {cancelled: true, err: ErrNoSlot, result: event.ClaimStopped},
		"without, because the pod is gone":     {meanwhile: func(s *apifake.Server) { removedBeforeReceipt(s) }, err: ErrPodGone, result: event.ClaimFailed},
	} {
		t.Run(name, func(t *testing.T) {
			server := shop(t, apifake.Assigned(1, empty(0)), bare())
			a := startedOn(t, server, Options{})
			var told heard
			a.happened, a.pace = event.Observers{&told}, pace.New(func() float64 { return 0 })
			if tc.meanwhile != nil {
				tc.meanwhile(server)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.cancelled {
				cancel()
			}
			defer a.follow(t.Context())()
			if err := a.claim(ctx); !errors.Is(err, tc.err) {
				t.Errorf("it returns %v", err)
			}
			var results []event.ClaimResult
			conflicts := 0
			for _, e := range told {
				switch e := e.(type) {
				case event.Claimed:
					results = append(results, e.Result)
				case event.Conflict:
					conflicts++
				}
			}
			if !slices.Equal(results, []event.ClaimResult{tc.result}) || conflicts != tc.conflicts {
				t.Errorf("it tells %q, and of %d conflicts", results, conflicts)
			}
			if holds := a.held != nil; holds != (tc.err == nil) || holds && a.Waiting() != "" {
				t.Errorf("it holds the slot: %t, and waits for %q", holds, a.Waiting())
			}
		})
	}
}

// removedBeforeReceipt has the pod vanish right before this process writes its receipt.
func removedBeforeReceipt(s *apifake.Server) {
	s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/pods/"+me) && s.Get(apifake.Pods, me) != nil {
			s.Remove(apifake.Pods, me)
		}
		return false
	})
}

// A late receipt of an earlier process shows in the lists, strands this one, and is gone when the pod is read.
func TestAClaimOutlivesAReceiptThatComesAndGoes(t *testing.T) {
	rival := apifake.Holding(other, 0, epoch)
	server := shop(t, edited(empty(0)), bare(), rival)
	a := startedOn(t, server, Options{Stopped: func(context.Context) error {
		t.Error("it asks for the end of work that it knows nothing of")
		return nil
	}})
	defer a.follow(t.Context())()
	server.Put(withReceipt(assignment.Receipt{Epoch: epoch}))
	read := 0
	server.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods/"+me) {
			read++
			server.Put(bare())
		}
		return false
	})
	if err := claiming(a).try(t.Context()); err != nil {
		t.Errorf("it returns %v", err)
	}
	if read == 0 || a.held != nil {
		t.Errorf("it read its pod %d times, and holds the slot: %t", read, a.held != nil)
	}
}

// The process knows that the map is clean, and others cannot: so it writes the map anew before it takes.
func TestAClaimWritesAMapAnewWhoseWriterTheServerForgot(t *testing.T) {
	server := shop(t, apifake.Assigned(1, naming(me, epoch)), bare())
	a := startedOn(t, server, Options{})
	if _, err := a.readOwner(t.Context()); err != nil {
		t.Fatal(err)
	}
	forget(server)
	server.Requests()
	if err := claiming(a).try(t.Context()); err != nil {
		t.Errorf("it returns %v", err)
	}
	if requests := server.Requests(); a.held == nil || !slices.Contains(requests, writesOwner) {
		t.Errorf("it holds the slot: %t, after %q", a.held != nil, requests)
	}
}
