package allocator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
	"github.com/idalloc/idalloc/pkg/identity"
)

// dozing is a quick clock of a machine whose boot-time clock stands still, but for leaps. Short waits by that clock end when renews is closed.
type dozing struct {
	quick

	slept  *atomic.Int64
	renews chan struct{}
}

func (d dozing) BootTime() time.Duration { return time.Duration(d.slept.Load()) }

func (d dozing) BootWait(until time.Duration, done <-chan struct{}) {
	short := d.renews
	if until-d.BootTime() > time.Second {
		short = nil
	}
	select {
	case <-short:
	case <-done:
	}
}

func doze(b *bench) dozing {
	d := dozing{quick: quick{start: time.Now()}, slept: &atomic.Int64{}, renews: make(chan struct{})}
	b.clk = d
	return d
}

func fenced(now map[string]identity.Identity) bool { return now["p0"].State == identity.StateFenced }

// The work of a fenced pod may continue until FenceLead is over. Until then no other pod may hear that the slot is free.
func TestAFencedPodWritesNothingBeforeItsWorkHasStopped(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	ended, wrote, said := make(chan time.Time, 9), make(chan time.Time, 99), make(chan struct{})
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if len(ended) > 0 && (r.Method == http.MethodPut || r.Method == http.MethodPatch) {
			wrote <- b.clk.Now()
			select {
			case <-said:
			case <-r.Context().Done():
			}
		}
		return false
	})
	const lead = 40 * time.Second
	p0 := b.works("p0", func(o *allocator.Options) {
		o.FenceAfter, o.FenceLead = 2*time.Minute, lead
		o.Fenced = func(time.Duration) { ended <- b.clk.Now() }
	})
	clk.slept.Store(int64(2*time.Minute - lead))
	b.scale(0) // the loop hears of that
	first := <-wrote
	if what := p0.alloc.Waiting(); !strings.Contains(what, "its work to stop after a fence: no answer came in time") {
		t.Errorf("it says that it waited for %s", what)
	}
	close(said)
	if gap := first.Sub(<-ended); gap < lead {
		t.Errorf("the work may go on for %s, and the pod writes after %s", lead, gap)
	}
}

// What ends before a fence is not about what begins after it.
func TestAStopUnderWayEndsWithTheFence(t *testing.T) {
	b := newBench(t, 2)
	clk := doze(b)
	stops, ends := make(chan int, 9), make(chan int, 9)
	b.works("p0", func(o *allocator.Options) {
		o.FenceAfter = allocator.MinFenceAfter
		o.Stop = func(ctx context.Context, s allocator.Stop) error {
			stops <- s.Number
			<-ctx.Done()
			ends <- s.Number
			return ctx.Err()
		}
	})
	b.scale(0)
	first := <-stops
	clk.slept.Store(int64(time.Hour))
	b.scale(2)
	b.until("the fence", fenced)
	b.until("the id again", has(0))
	select {
	case ended := <-ends:
		if ended != first {
			t.Errorf("stop %d has ended, and not %d", ended, first)
		}
	default:
		t.Error("work has begun again while a stop is under way: its end would be taken for that of the new work")
	}
}

// The Lease was deleted, and another pod has made it. A renewal finds that.
func TestAPodWhoseLeaseIsAnothersEndsItsWorkAtOnce(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	follows := b.times(func(r *http.Request) bool {
		return r.URL.Query().Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/pods")
	})
	reasons := make(chan string, 9)
	b.works("p0", func(o *allocator.Options) {
		o.FenceAfter = allocator.MinFenceAfter
		o.Observer = on(func(e event.Fenced) { reasons <- e.Reason })
	})
	<-follows // its own pod, after which nothing wakes the loop
	b.api.Change("Lease", slotlease.Name("Deployment/worker", 0), func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, "other/uid", "spec", "holderIdentity"); err != nil {
			t.Error(err)
		}
	})
	close(clk.renews)
	b.until("the fence, although no time has passed", fenced)
	if reason := <-reasons; reason != "pod other has the Lease idalloc-deployment.worker-0" {
		t.Errorf("the fence is for %q", reason)
	}
	b.await("p0 lets go of the slot", func() bool { return b.says("p0", receipt.Waits) })
}

// Release says that the work has stopped, so nothing is left to wait for.
func TestAFencedPodThatEndsGivesItsSlotUpAtOnce(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	const lead = 20 * time.Minute
	p0 := b.works("p0", func(o *allocator.Options) { o.FenceAfter, o.FenceLead = time.Hour, lead })
	clk.slept.Store(int64(time.Hour))
	b.scale(2) // the loop hears of that
	b.until("the fence", fenced)
	at := b.clk.Now()
	p0.release()
	if took := b.clk.Since(at); took >= lead || !b.says("p0", receipt.GaveUp) {
		t.Errorf("it takes %s to give the slot up", took)
	}
}

// An admission policy drops the receipts of Leases. A renewal that comes back without it keeps nothing, and the pod says what is missing.
func TestALeaseThatAdmissionChangesIsNotKept(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	var drops atomic.Bool
	dropped, reasons, said := make(chan struct{}, 2), make(chan string, 9), make(chan string, 99)
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if drops.Load() && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/leases/") {
			b.withoutAnnotations(r)
			note(dropped, struct{}{})
		}
		return false
	})
	b.works("p0", func(o *allocator.Options) {
		o.FenceAfter = allocator.MinFenceAfter
		o.Observer = observer(func(e event.Event) {
			switch e := e.(type) {
			case event.Fenced:
				reasons <- e.Reason
			case event.StillWaiting:
				said <- e.Reason
			}
		})
	})
	b.fences(clk, &drops, dropped)
	names := func(reason string) bool {
		return strings.Contains(reason, receipt.Key+" of Lease idalloc-deployment.worker-0 in namespace") && strings.Contains(reason, "exempt idalloc's keys")
	}
	if reason := <-reasons; !names(reason) {
		t.Errorf("the fence is for %q", reason)
	}
	for late := time.After(time.Minute); ; {
		select {
		case reason := <-said:
			if !names(reason) {
				continue // the pod waits for its work to stop
			}
		case <-late:
			t.Fatal("the pod does not say what it waits for")
		}
		break
	}
	drops.Store(false)
	b.until("the id again", has(0))
}

// fences has renewals fail, of which seen tells, until the time is over.
func (b *bench) fences(clk dozing, fails *atomic.Bool, seen <-chan struct{}) {
	b.t.Helper()
	fails.Store(true)
	close(clk.renews)
	<-seen
	<-seen // the answer to the first has been read
	clk.slept.Store(int64(time.Hour))
	b.scale(2) // the loop hears of that
	b.until("the fence", fenced)
}

// withoutAnnotations drops the annotations of what a request writes.
func (b *bench) withoutAnnotations(r *http.Request) {
	var o unstructured.Unstructured
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		b.t.Error(err)
	}
	o.SetAnnotations(nil)
	body, err := o.MarshalJSON()
	if err != nil {
		b.t.Error(err)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// A renewal is refused because of the credentials, which is no contact. The watch stays open, and the pod says it at once.
func TestAPodWhoseRenewalsAreRefusedSaysThatItHasNoContact(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	refused, seen := b.refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized", asks(http.MethodPut, "/leases/"))
	stale, reasons := make(chan bool, 9), make(chan string, 9)
	b.works("p0", func(o *allocator.Options) {
		o.FenceAfter, o.Stale = allocator.MinFenceAfter, func(now bool) { stale <- now }
		o.Observer = on(func(e event.Away) { reasons <- e.Reason.Error() })
	})
	refused.Store(true)
	close(clk.renews)
	<-seen
	if !<-stale || !has(0)(map[string]identity.Identity{"p0": b.shows("p0")}) {
		t.Error("it says that it has contact, or has no id")
	}
	if reason := <-reasons; !strings.Contains(reason, "does not accept the credentials") {
		t.Errorf("it has lost contact for %q", reason)
	}
	refused.Store(false)
	if <-stale {
		t.Error("it loses contact twice")
	}
}

// What the pod has said of that before stands when it is fenced.
func TestAPodThatIsFencedForLackOfContactSaysThatItHasNone(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	refused, seen := b.refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized", asks(http.MethodPut, "/leases/"))
	stale := make(chan bool, 9)
	b.works("p0", func(o *allocator.Options) {
		o.FenceAfter, o.Stale = allocator.MinFenceAfter, func(now bool) { stale <- now }
	})
	b.fences(clk, refused, seen)
	if !<-stale {
		t.Error("it says that it has contact")
	}
	refused.Store(false)
	b.until("the id again", has(0))
	if <-stale {
		t.Error("it loses contact twice")
	}
}
