package allocator_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// said has what a pod says that it waits for come through a channel.
func said(to chan<- string) func(*allocator.Options) {
	return func(o *allocator.Options) {
		o.Observer = on(func(e event.StillWaiting) { note(to, e.Reason) })
	}
}

// The API server does not accept the token of a pod that is gone. The watch that is open stays open.
func TestAPodThatIsGoneEndsAlthoughItsTokenIsNotAcceptedAnyMore(t *testing.T) {
	b := newBench(t, 1)
	var gone atomic.Bool
	follows := make(chan struct{}, 9)
	b.api.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if gone.Load() {
			apifake.Refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
			return true
		}
		if r.URL.Query().Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/pods") {
			follows <- struct{}{}
		}
		return false
	})
	p := b.works("p0", nil)
	<-follows
	gone.Store(true)
	b.api.Remove(apifake.Pods, "p0")
	b.until("the end of the id", func(now map[string]identity.Identity) bool { return now["p0"].State == identity.StateLost })
	if err := <-p.done; !errors.Is(err, allocator.ErrPodGone) {
		t.Errorf("Run ends with %v", err)
	}
	p.done = nil
}

// A policy of the cluster refuses changes of workloads for a while.
func TestPlansThatAreRefusedStopNoWork(t *testing.T) {
	b := newBench(t, 2)
	b.pod("p0")
	b.pod("p1")
	refused, seen := b.refuse(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "freeze" denied the request: not now`, asks(http.MethodPatch, "/deployments/"))
	b.works("p0", nil)
	before := b.shows("p0")
	refused.Store(true)
	b.annotate(nil) // the holder writes it again
	<-seen
	waits := make(chan string, 1)
	b.start("p1", said(waits))
	for what := range waits {
		if strings.Contains(what, "not now") {
			break
		}
	}
	refused.Store(false)
	b.until("both ids", has(0, 1))
	if now := b.shows("p0"); now.Token != before.Token {
		t.Errorf("the holder took its id again: %v, before %v", now, before)
	}
}

// The slot is free when the receipt says so. What the owner proposes may stay for others to write.
func TestASlotIsReleasedAlthoughThePlanIsRefused(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	b.pod("p1")
	refused, _ := b.refuse(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "freeze" denied the request: not now`, asks(http.MethodPatch, "/deployments/"))
	p := b.works("p0", nil)
	b.start("p1", nil)
	b.await("p1 waits", func() bool { return b.says("p1", receipt.Waits) })
	refused.Store(true)
	p.kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := p.alloc.Release(ctx, false); err != nil || b.says("p0", receipt.Locks) {
		t.Errorf("Release returns %v, and the slot is locked: %t", err, b.says("p0", receipt.Locks))
	}
	refused.Store(false)
}

// The permission to write Leases is taken away.
func TestAFenceForWhichTheAPIServerIsNotToBlameSaysSo(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	refused, seen := b.refuse(http.StatusForbidden, metav1.StatusReasonForbidden,
		`leases.coordination.k8s.io "x" is forbidden: User "a" cannot update resource "leases"`, asks(http.MethodPut, "/leases/"))
	reasons := make(chan string, 9)
	p := b.works("p0", func(o *allocator.Options) {
		o.FenceAfter = allocator.MinFenceAfter
		o.Observer = on(func(e event.Fenced) { reasons <- e.Reason })
	})
	b.fences(clk, refused, seen)
	if reason := <-reasons; !strings.Contains(reason, `add verb "update"`) {
		t.Errorf("the fence is for %q", reason)
	}
	var forbidden *request.ForbiddenError
	if err := <-p.done; !errors.As(err, &forbidden) {
		t.Errorf("Run ends with %v", err)
	}
	p.done = nil
}

// A busy server that puts renewals off does not refuse them.
func TestRenewalsThatArePutOffAreNotRefused(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	busy, seen := b.refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "later", asks(http.MethodPut, "/leases/"))
	heard := make(chan event.Event, 9)
	b.works("p0", func(o *allocator.Options) {
		o.FenceAfter = allocator.MinFenceAfter
		o.Observer = observer(func(e event.Event) {
			switch e.(type) {
			case event.Unrenewed, event.Fenced:
				heard <- e
			}
		})
	})
	b.fences(clk, busy, seen)
	if e, is := (<-heard).(event.Fenced); !is {
		t.Errorf("before the fence the pod says %#v", e)
	}
}

// Run continues what Claim has begun.
func TestTheLeaseIsRenewedAfterAClaim(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	b.pod("p0")
	renewed := b.times(asks(http.MethodPut, "/leases/"))
	s := b.api.Store(t, b.clk)
	a, err := allocator.New(t.Context(), allocator.Options{Store: s, Pod: "p0", Namespace: apifake.Namespace, HandsOver: true, FenceAfter: allocator.MinFenceAfter})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	close(clk.renews)
	select {
	case <-renewed:
	case err := <-done:
		t.Errorf("Run ends with %v", err)
		done <- err
	}
	end()
	if err := <-done; err == nil {
		t.Error("Run ends without the error of its context")
	}
}

// Whether the Lease is still this pod's is not known: it may have been deleted, or cleared. So the pod writes the Lease again before it works.
func TestALeaseThatMayHaveGoneIsWrittenAgainBeforeWorkBegins(t *testing.T) {
	b := newBench(t, 1)
	b.clk = doze(b)
	var goes atomic.Bool
	var after atomic.Int32
	b.api.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/leases") || r.Method == http.MethodGet {
			return false
		}
		if r.Method != http.MethodDelete || !goes.CompareAndSwap(true, false) {
			after.Add(1)
			return false
		}
		after.Store(0)
		b.scale(1)
		apifake.Refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the answer is lost")
		return true
	})
	b.works("p0", strict)
	goes.Store(true)
	b.scale(0)
	b.until("no id", has())
	b.until("the id again", has(0))
	if after.Load() == 0 {
		t.Error("it works under a Lease that may be free")
	}
}

// A policy that is installed beside running pods refuses their renewals. That is no silence: the API server says why before the time of the Lease is over,
// and when the policy permits them, the pod has its id again.
func TestRenewalsThatAreRefusedAreNoSilence(t *testing.T) {
	const sentence = "ValidatingAdmissionPolicy 'idalloc-leases' denied request: not this Lease"
	b := newBench(t, 1)
	clk := doze(b)
	refused, seen := b.refuse(http.StatusForbidden, metav1.StatusReasonForbidden, sentence, asks(http.MethodPut, "/leases/"))
	heard, waits := make(chan event.Event, 9), make(chan string, 9)
	var stale atomic.Bool
	p := b.works("p0", func(o *allocator.Options) {
		o.FenceAfter = allocator.MinFenceAfter
		o.Stale = func(is bool) { stale.Store(stale.Load() || is) }
		o.Observer = observer(func(e event.Event) {
			switch e := e.(type) {
			case event.Unrenewed, event.Fenced:
				heard <- e
			case event.StillWaiting:
				note(waits, e.Reason)
			}
		})
	})
	refused.Store(true)
	close(clk.renews)
	<-seen
	if e, is := (<-heard).(event.Unrenewed); !is || !strings.Contains(e.Reason, sentence) {
		t.Errorf("before the fence the pod says %#v", e)
	}
	if !b.shows("p0").Assigned() {
		t.Error("the pod has no id before the time of its Lease is over")
	}
	clk.slept.Store(int64(time.Hour))
	b.until("the fence", fenced)
	if e, is := (<-heard).(event.Fenced); !is || !strings.Contains(e.Reason, sentence) {
		t.Errorf("the fence is for %#v", e)
	}
	for what := range waits {
		if strings.Contains(what, sentence) {
			break
		}
	}
	if what := p.alloc.Waiting(); !strings.Contains(what, sentence) {
		t.Errorf("the pod waits for %s", what)
	}
	if stale.Load() {
		t.Error("a refusal counts as an API server that is away")
	}
	refused.Store(false)
	b.until("the id again", has(0))
}
