package allocator_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

func TestAPodFollowsOtherPodsOnlyWhileItWaits(t *testing.T) {
	b := newBench(t, 1)
	open := make(chan int, 100)
	var now atomic.Int64
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if q := r.URL.Query(); q.Get("watch") != "" && q.Get("labelSelector") != "" {
			open <- int(now.Add(1))
			context.AfterFunc(r.Context(), func() { open <- int(now.Add(-1)) })
		}
		return false
	})
	until := func(want int) {
		t.Helper()
		late := time.After(time.Minute)
		for {
			select {
			case n := <-open:
				if n == want {
					return
				}
			case <-late:
				t.Fatalf("there are %d watches of the pods, not %d", now.Load(), want)
			}
		}
	}
	b.pod("p0")
	b.pod("p1")
	first := b.works("p0", nil)
	b.start("p1", nil)
	until(2)
	first.release()
	b.until("the second holder", assigned("p1"))
	until(0)
}

func TestAHandOverGoesToTheNewRevision(t *testing.T) {
	b := newBench(t, 1)
	b.works("old", nil)
	b.newer("new")
	b.start("new", nil)
	b.until("the new pod's id", func(now map[string]identity.Identity) bool { return now["new"].Assigned() && !now["old"].Assigned() })
}

func TestStrictPodsHaveLeases(t *testing.T) {
	b := newBench(t, 2)
	b.clk = clock.RealClock{} // as the boot-time clock
	b.pod("p0")
	b.pod("p1")
	var running atomic.Pointer[allocator.Allocator]
	p0 := b.start("p0", func(o *allocator.Options) {
		strict(o)
		o.Observer = observer(func(event.Event) { // asks whether the time is over, as the metrics do
			if a := running.Load(); a != nil {
				a.Fenced()
			}
		})
	})
	running.Store(p0.alloc)
	b.start("p1", strict)
	b.until("two ids", has(0, 1))
	r, _ := receipt.Of(b.api.Get(apifake.Pods, "p0"), "Deployment/worker")
	if !r.Strict || b.api.Get("Lease", slotlease.Name("Deployment/worker", 0)) == nil {
		t.Errorf("the receipt is %+v", r)
	}
	p0.release()
	b.works("p2", strict)
}

func TestALoopThatFindsTheTimeOverStopsTheWork(t *testing.T) {
	b, calls := newBench(t, 2), make(chan time.Duration, 99)
	clk := doze(b)
	var asleep, again atomic.Bool
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		again.Store(again.Load() || asleep.Load() && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/leases/"))
		return false
	})
	b.works("p0", func(o *allocator.Options) {
		o.FenceAfter, o.Fenced = allocator.MinFenceAfter, func(by time.Duration) {
			if calls <- by; again.Load() {
				t.Error("the work is stopped although the pod has a Lease again")
			}
		}
	})
	clk.slept.Store(int64(time.Hour))
	asleep.Store(true)
	b.scale(3) // the loop hears of that
	b.until("no id", fenced)
	select {
	case by := <-calls:
		if by > time.Hour {
			t.Errorf("the work is to stop by %v, and it is %v", by, time.Hour)
		}
	default:
		t.Error("the work was not stopped")
	}
	b.until("the id again", has(0))
}

func TestAPodFollowsItsOwner(t *testing.T) {
	b := newBench(t, 1)
	stops := make(chan allocator.Stop, 9)
	b.works("p0", func(o *allocator.Options) {
		o.Stop = func(_ context.Context, s allocator.Stop) error { stops <- s; return nil }
	})
	b.api.Change("ReplicaSet", "rs-1", func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
	b.api.Remove(apifake.Deployment, apifake.Worker)
	owned := func(kind string) func(map[string]identity.Identity) bool {
		return func(now map[string]identity.Identity) bool {
			return now["p0"].Assigned() && now["p0"].Owner.Kind == kind
		}
	}
	b.until("the id of the ReplicaSet, which has no owner", owned("ReplicaSet"))
	b.api.Put(apifake.Owner(1))
	b.api.Change("ReplicaSet", "rs-1", func(o *unstructured.Unstructured) {
		o.SetOwnerReferences(apifake.ReplicaSet("rs-1", "1").GetOwnerReferences())
	})
	b.until("the id of the Deployment that took the ReplicaSet over", owned("Deployment"))
	for range 2 {
		if s := <-stops; !s.All || s.Lost {
			t.Errorf("the stop is %+v", s)
		}
	}
}

// A watch may be behind: it does not know an object yet that a read has found. To read again and again would not help, and take all the time.
func TestAWatchThatIsBehind(t *testing.T) {
	for resource, read := range map[string]string{"deployments": "GET deployments/" + apifake.Worker, "pods": "GET pods/p0"} {
		b := newBench(t, 1)
		b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
			if q := r.URL.Query(); strings.HasSuffix(r.URL.Path, "/"+resource) && q.Has("watch") && strings.HasPrefix(q.Get("fieldSelector"), "metadata.name=") {
				q.Set("fieldSelector", "metadata.name=none")
				r.URL.RawQuery = q.Encode()
			}
			return false
		})
		b.works("p0", nil)
		b.scale(3)
		b.until("the count", func(now map[string]identity.Identity) bool { return now["p0"].Count == 3 })
		reads := 0
		for _, request := range b.api.Requests() {
			if request == read {
				reads++
			}
		}
		if reads > 20 {
			t.Errorf("%s: %d reads", resource, reads)
		}
	}
}

func TestAStopIsCalledOff(t *testing.T) {
	b := newBench(t, 2)
	b.pod("p0")
	b.pod("p1")
	stopping, called := make(chan struct{}, 1), make(chan struct{}, 1)
	stubborn := func(o *allocator.Options) {
		o.Stop = func(ctx context.Context, _ allocator.Stop) error {
			stopping <- struct{}{}
			<-ctx.Done()
			called <- struct{}{}
			return ctx.Err()
		}
	}
	b.works("p0", stubborn)
	b.works("p1", stubborn)
	b.scale(1)
	<-stopping
	b.scale(2)
	<-called
	b.until("both ids again", has(0, 1))
}
