package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

func TestTheLogNamesTheOwnerThatThePodFollows(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	lines := make(chan string, 100)
	b.start("p0", func(o *allocator.Options) {
		o.Log = funcr.New(func(_, line string) {
			if strings.Contains(line, `"state changed"`) && strings.Contains(line, `"assigned"`) {
				lines <- line
			}
		}, funcr.Options{})
	})
	<-lines
	b.api.Change("ReplicaSet", "rs-1", func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
	b.api.Remove(apifake.Deployment, apifake.Worker)
	if line := <-lines; !strings.Contains(line, `"owner"="ReplicaSet/rs-1"`) || strings.Contains(line, "Deployment") {
		t.Errorf("the log says %s", line)
	}
}

// Writes that come back changed are repeated later and later, and the pod says which key it is and what to do.
func TestAWriteThatAdmissionChangesIsRepeatedSeldomAndSaidToBe(t *testing.T) {
	for kind, tc := range map[string]struct{ name, key string }{
		apifake.Pods:       {"p0", receipt.Key},
		apifake.Deployment: {apifake.Worker, "idalloc.dev/assignment"},
	} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, 1)
			b.pod("p0")
			writes, said := make(chan time.Time, 100), make(chan string, 1)
			b.api.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/"+tc.name) {
					return false
				}
				writes <- b.clk.Now() // the pod waits from the answer on, which comes later
				b.changed(w, kind, tc.name)
				return true
			})
			b.start("p0", func(o *allocator.Options) {
				o.Observer = on(func(e event.StillWaiting) { note(said, e.Reason) })
			})
			last, least := <-writes, 25*time.Millisecond
			for ; least < 5*time.Second; least = min(2*least, 5*time.Second) {
				at := <-writes
				if gap := at.Sub(last); gap < least {
					t.Errorf("the next write comes after %s; want at least %s", gap, least)
				}
				last = at
			}
			if reason := <-said; !strings.Contains(reason, tc.key) || !strings.Contains(reason, "exempt idalloc's keys") || strings.Contains(reason, "API server") {
				t.Errorf("it waits for %q", reason)
			}
		})
	}
}

// Another program removes the receipt as soon as it is written. The pod writes it later and later.
func TestAReceiptThatIsRemovedAgainAndAgainIsWrittenSeldom(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	times := b.times(asks(http.MethodPatch, "/pods/p0"))
	go b.api.Await(t.Context(), func() bool {
		if b.ownReceipt() != "" {
			b.api.Change(apifake.Pods, "p0", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
		}
		return false
	})
	b.start("p0", nil)
	seldom(t, 10*time.Second, times)
}

// Without the permission to read the owner the loop ends, although it may watch it.
func TestAProcessThatMayNotReadItsOwnerEnds(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	refused, _ := b.refuse(http.StatusForbidden, metav1.StatusReasonForbidden,
		`deployments.apps "worker" is forbidden: User "a" cannot get resource "deployments"`, asks(http.MethodGet, "/deployments/worker"))
	refused.Store(true)
	p := b.start("p0", nil)
	var forbidden *request.ForbiddenError
	if err := <-p.done; !errors.As(err, &forbidden) || forbidden.Verb != "get" {
		t.Errorf("Run ends with %v", err)
	}
	p.done = nil
}

// No plan gives a slot to a pod that is being deleted, so its process need not say that it ends.
func TestAWaiterThatEndsWithItsPodWritesNothing(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	b.pod("p1")
	b.works("p0", nil)
	b.api.Change(apifake.Pods, "p1", func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(new(metav1.Now())) })
	waiter := b.start("p1", nil)
	b.await("p1 waits", func() bool { return b.says("p1", receipt.Waits) })
	b.scale(2)
	b.until("the count", func(now map[string]identity.Identity) bool { return now["p1"].Count == 2 }) // it has the answer to that write, too
	waiter.release()
	if !b.says("p1", receipt.Waits) {
		t.Error("it has written its receipt once more")
	}
}

// No plan gives a slot to a pod whose process ended while it waited.
func TestAWaiterThatEndsGetsNothing(t *testing.T) {
	b := newBench(t, 1)
	for i := range 3 {
		b.pod(fmt.Sprint("p", i))
	}
	holder := b.works("p0", nil)
	waiter := b.start("p1", nil)
	b.await("p1 waits", func() bool { return b.says("p1", receipt.Waits) })
	waiter.kill()
	b.api.Requests()
	waiter.release()
	sent := slices.DeleteFunc(b.api.Requests(), func(r string) bool { return !strings.HasPrefix(r, "PATCH ") || r == "PATCH pods/p0" }) // the holder notes its token
	if !slices.Equal(sent, []string{"PATCH pods/p1"}) || !b.says("p1", receipt.GaveUp) {
		t.Errorf("a waiter that ends writes %v", sent)
	}
	holder.release()
	b.start("p2", nil)
	b.until("the id of the pod that runs", assigned("p2"))
}

// The workload is deleted while a write of its map is under way, which has no answer. A pod that ends does not wait for that map.
func TestAPodThatEndsAfterItsWorkloadWaitsForNoMap(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	b.api.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/"+apifake.Worker) {
			return false
		}
		b.api.Remove(apifake.Deployment, apifake.Worker)
		w.WriteHeader(http.StatusGatewayTimeout)
		return true
	})
	p := b.start("p0", nil)
	b.await("p0 waits for its workload", func() bool { return strings.Contains(p.alloc.Waiting(), "to exist") })
	p.kill()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := p.alloc.Release(ctx, false); err != nil || ctx.Err() != nil {
		t.Errorf("the release ended with %v and %v", err, ctx.Err())
	}
}

// Another program puts an ancient map and an ancient row back whenever a pod that joins takes partitions.
func TestAncientAnnotationsWhilePartitionsGrow(t *testing.T) {
	b := newBench(t, 2)
	b.annotate(map[string]string{"idalloc.dev/partition-count": "12"})
	b.pod("p0")
	b.pod("p1")
	b.start("p0", divides)
	b.until("all for one", worksOn("p0", 12))
	ancient := b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations()
	var times atomic.Int32
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		const most = 6
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/pods/p1") && times.Add(1) <= most {
			b.annotate(ancient)
		}
		return false
	})
	b.start("p1", divides)
	b.until("a half for each", halves(12))
}

// A write may take the user's annotations with idalloc's. Work continues as far as the user's allow it, and one of the pods says which they are.
func TestAWriteThatTakesTheUsersKeysToo(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		left        int
		says        string
	}{
		"kubectl replace":      {nil, 12, `removed idalloc.dev/partition-count, which was "12"`},
		"kubectl rollout undo": {map[string]string{"idalloc.dev/partition-count": "8", "idalloc.dev/assignment": `{"0":"old"}`}, 8, `set idalloc.dev/partition-count from "12" to "8"`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			b.annotate(map[string]string{"idalloc.dev/partition-count": "12"})
			stops, said := make(chan allocator.Stop, 100), make(chan string, 100)
			for _, pod := range []string{"p0", "p1"} {
				b.pod(pod)
				b.start(pod, func(o *allocator.Options) {
					o.Divides = true
					o.Stop = func(_ context.Context, s allocator.Stop) error { stops <- s; return nil }
					o.Observer = on(func(e event.Damaged) { said <- e.Detail })
				})
			}
			b.until("a half for each", halves(12))
			for len(stops) > 0 {
				<-stops
			}
			before := b.shows("p0")
			b.annotate(tc.annotations)
			if detail := <-said; !strings.Contains(detail, tc.says) {
				t.Errorf("it says %q", detail)
			}
			b.until("a half for each again", halves(tc.left))
			b.await("the row is back", func() bool { return b.row() == tc.left })
			for len(stops) > 0 {
				if s := <-stops; s.All || tc.left == 12 {
					t.Errorf("work is stopped: %+v", s)
				}
			}
			if after := b.shows("p0"); after.Token != before.Token {
				t.Errorf("%+v became %+v", before, after)
			}
		})
	}
}
