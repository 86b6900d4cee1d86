package allocator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/apifake"
)

// bench is a workload on a server.
type bench struct {
	t   *testing.T
	api *apifake.Server
	clk clock.Clock

	mu   sync.Mutex
	now  map[string]identity.Identity
	said chan struct{}
}

func newBench(t *testing.T, count int64) *bench {
	t.Helper()
	b := &bench{t: t, api: apifake.New(t), clk: quick{start: time.Now()}, now: map[string]identity.Identity{}, said: make(chan struct{}, 1)}
	b.api.Put(apifake.Owner(count))
	b.api.Put(replicaSet("rs-1", "1"))
	return b
}

func replicaSet(name, revision string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apifake.Apps, "kind": "ReplicaSet", "metadata": map[string]any{"name": name, "uid": name},
		"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": apifake.Worker}}},
	}}
	o.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": revision})
	controller := true
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apifake.Apps, Kind: apifake.Deployment, Name: apifake.Worker, UID: apifake.OwnerUID, Controller: &controller}})
	return o
}

// process is one run of a pod's program.
type process struct {
	*bench

	alloc *allocator.Allocator
	pod   string
	end   context.CancelFunc
	done  chan error
}

// pod makes a pod of a ReplicaSet.
func (b *bench) pod(name string) {
	o := apifake.Pod(name)
	controller := true
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apifake.Apps, Kind: "ReplicaSet", Name: "rs-1", UID: "rs-1", Controller: &controller}})
	b.api.Put(o)
}

// start starts a process in a pod.
func (b *bench) start(pod string, change func(*allocator.Options)) *process {
	b.t.Helper()
	s, err := store.New(b.api.Config(), b.clk)
	if err != nil {
		b.t.Fatal(err)
	}
	o := allocator.Options{Store: s, Pod: pod, Namespace: apifake.Namespace, Log: logr.Discard(), HandsOver: true, Publish: func(id identity.Identity) { b.publish(pod, id) }}
	if change != nil {
		change(&o)
	}
	showsStops(b.t, &o)
	ctx, end := context.WithCancel(b.t.Context())
	p := &process{bench: b, pod: pod, end: end, done: make(chan error, 1)}
	if p.alloc, err = allocator.New(ctx, o); err != nil {
		b.t.Fatal(err)
	}
	go func() { p.done <- p.alloc.Run(ctx) }()
	b.t.Cleanup(func() { p.kill() })
	return p
}

// kill ends the process without a word.
func (p *process) kill() {
	p.end()
	if p.done != nil {
		if err := <-p.done; err == nil {
			p.t.Error("Run ended without the context's error")
		}
		p.done = nil
	}
	p.publish(p.pod, identity.Pending(p.pod, apifake.Namespace))
}

// release ends the process as SIGTERM does.
func (p *process) release() {
	p.t.Helper()
	p.kill()
	if err := p.alloc.Release(p.t.Context(), false); err != nil {
		p.t.Error(err)
	}
}

// publish notes an identity, and looks for a second holder.
func (b *bench) publish(pod string, id identity.Identity) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, theirs := range b.now {
		if other == pod || !theirs.Assigned() || !id.Assigned() {
			continue
		}
		if theirs.ID == id.ID {
			b.t.Errorf("%s and %s have id %d", pod, other, id.ID)
		}
		if both := theirs.Partitions.Owned().Union(theirs.Partitions.Stopping()).Intersect(id.Partitions.Owned().Union(id.Partitions.Stopping())); !both.Empty() {
			b.t.Errorf("%s and %s work on partitions %s", pod, other, both)
		}
	}
	b.now[pod] = id
	b.ring()
}

// ring has until look again.
func (b *bench) ring() {
	select {
	case b.said <- struct{}{}:
	default:
	}
}

// shows is what a pod published last.
func (b *bench) shows(pod string) identity.Identity {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now[pod]
}

// until waits for what the pods publish.
func (b *bench) until(what string, is func(now map[string]identity.Identity) bool) {
	b.t.Helper()
	late := time.After(time.Minute)
	for {
		b.mu.Lock()
		now := maps.Clone(b.now)
		b.mu.Unlock()
		if is(now) {
			return
		}
		select {
		case <-b.said:
		case <-late:
			b.t.Fatalf("%s does not come: %v; the owner is %v", what, now, b.api.Get(apifake.Deployment, apifake.Worker))
		}
	}
}

// ids are the ids of those that have one, in order.
func ids(now map[string]identity.Identity) (out []int) {
	for _, id := range now {
		if id.Assigned() {
			out = append(out, id.ID)
		}
	}
	slices.Sort(out)
	return out
}

func has(want ...int) func(map[string]identity.Identity) bool {
	return func(now map[string]identity.Identity) bool { return slices.Equal(ids(now), want) }
}

func TestEachPodGetsAnIDOfItsOwn(t *testing.T) {
	b := newBench(t, 3)
	for i := range 3 {
		b.pod(fmt.Sprint("p", i))
	}
	for i := range 3 {
		b.start(fmt.Sprint("p", i), nil)
	}
	b.until("three ids", has(0, 1, 2))
}

func TestAWaiterGetsTheSlotOfAPodThatEnds(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	b.pod("p1")
	first := b.start("p0", nil)
	b.until("the first id", has(0))
	b.start("p1", nil)
	before := b.shows("p0").Token
	first.release()
	b.until("the second holder", func(now map[string]identity.Identity) bool { return now["p1"].Assigned() })
	if after := b.shows("p1").Token; after <= before {
		t.Errorf("the second token is %d, the first was %d", after, before)
	}
}

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
	first := b.start("p0", nil)
	b.until("the first id", has(0))
	b.start("p1", nil)
	until(2)
	first.release()
	b.until("the second holder", func(now map[string]identity.Identity) bool { return now["p1"].Assigned() })
	until(0)
}

func TestAScaleDownMovesTheHighestID(t *testing.T) {
	b := newBench(t, 2)
	b.pod("p0")
	b.pod("p1")
	b.start("p0", nil)
	b.start("p1", nil)
	b.until("two ids", has(0, 1))
	b.scale(1)
	b.until("one id", has(0))
	b.scale(3)
	b.until("two ids again", func(now map[string]identity.Identity) bool { return len(ids(now)) == 2 })
}

func (b *bench) scale(count int64) {
	b.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, count, "spec", "replicas"); err != nil {
			b.t.Error(err)
		}
	})
}

func TestAProcessThatIsStartedAgainKeepsTheID(t *testing.T) {
	b := newBench(t, 2)
	b.pod("p0")
	b.pod("p1")
	p0 := b.start("p0", nil)
	b.start("p1", nil)
	b.until("two ids", has(0, 1))
	was := b.shows("p0").ID
	p0.kill()
	b.start("p0", nil)
	b.until("the id", func(now map[string]identity.Identity) bool { return now["p0"].Assigned() && now["p0"].ID == was })
}

func TestAForeignMapMovesNobody(t *testing.T) {
	b := newBench(t, 2)
	b.pod("p0")
	b.pod("p1")
	b.start("p0", nil)
	b.start("p1", nil)
	b.until("two ids", has(0, 1))
	was := b.shows("p0")
	want := b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations()
	for _, text := range []string{`{"0":"x","1":"y"}`, `{"0":"p1","1":"p0"}`, "{", ""} {
		b.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"idalloc.dev/assignment": text})
		})
		if !b.api.Await(t.Context(), func() bool { return maps.Equal(b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations(), want) }) {
			t.Fatalf("%q stays", text)
		}
	}
	if now := b.shows("p0"); now != was {
		t.Errorf("the id was %v and is %v", was, now)
	}
}

func TestARemovedReceiptStopsTheWorkAndIsWrittenAgain(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	stops := make(chan allocator.Stop, 1)
	b.start("p0", func(o *allocator.Options) {
		o.Stop = func(_ context.Context, s allocator.Stop) error { stops <- s; return nil }
	})
	b.until("the id", has(0))
	token := b.shows("p0").Token
	b.api.Change(apifake.Pods, "p0", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
	if s := <-stops; !s.All || !s.Lost {
		t.Errorf("the stop is %+v", s)
	}
	b.until("the id again", func(now map[string]identity.Identity) bool { return now["p0"].Assigned() && now["p0"].Token > token })
}

// newer makes a pod of a second revision.
func (b *bench) newer(name string) {
	b.api.Put(replicaSet("rs-2", "2"))
	b.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		a := o.GetAnnotations()
		a["deployment.kubernetes.io/revision"] = "2"
		o.SetAnnotations(a)
		o.Object["status"] = map[string]any{"replicas": int64(2), "updatedReplicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1)}
	})
	o := apifake.Pod(name)
	controller := true
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apifake.Apps, Kind: "ReplicaSet", Name: "rs-2", UID: "rs2", Controller: &controller}})
	b.api.Put(o)
}

func TestAHandOverGoesToTheNewRevision(t *testing.T) {
	b := newBench(t, 1)
	b.pod("old")
	b.start("old", nil)
	b.until("the id", has(0))
	b.newer("new")
	b.start("new", nil)
	b.until("the new pod's id", func(now map[string]identity.Identity) bool { return now["new"].Assigned() && !now["old"].Assigned() })
}

func TestPartitionsAreDividedAndMove(t *testing.T) {
	b := newBench(t, 3)
	b.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{"idalloc.dev/partition-count": "12"})
	})
	divides := func(o *allocator.Options) { o.Divides = true }
	for i := range 3 {
		b.pod(fmt.Sprint("p", i))
	}
	b.start("p0", divides)
	all := placement.Between(0, 11)
	b.until("all for one", func(now map[string]identity.Identity) bool { return now["p0"].Partitions.Owned().Equal(all) })
	b.start("p1", divides)
	b.start("p2", divides)
	b.until("a third for each", func(now map[string]identity.Identity) bool {
		var owned placement.Set
		for _, id := range now {
			if id.Partitions.Owned().Len() != 4 {
				return false
			}
			owned = owned.Union(id.Partitions.Owned())
		}
		return owned.Equal(all)
	})
}

// asking asks at each event whether the time is over, as the metrics do.
type asking struct {
	alloc atomic.Pointer[allocator.Allocator]
}

func (a *asking) Observe(event.Event) {
	if alloc := a.alloc.Load(); alloc != nil {
		alloc.Fenced()
	}
}

func TestStrictPodsHaveLeases(t *testing.T) {
	b := newBench(t, 2)
	b.clk = clock.RealClock{} // as the boot-time clock
	b.pod("p0")
	b.pod("p1")
	strict := func(o *allocator.Options) { o.FenceAfter = allocator.MinFenceAfter }
	asks := &asking{}
	p0 := b.start("p0", func(o *allocator.Options) { strict(o); o.Observer = asks })
	asks.alloc.Store(p0.alloc)
	b.start("p1", strict)
	b.until("two ids", has(0, 1))
	r, _ := receipt.Of(b.api.Get(apifake.Pods, "p0"), "Deployment/worker")
	if !r.Strict || b.api.Get("Lease", store.LeaseName("Deployment/worker", 0)) == nil {
		t.Errorf("the receipt is %+v", r)
	}
	p0.release()
	b.pod("p2")
	b.start("p2", strict)
	b.until("the released id", has(0, 1))
}

func TestTheWorkIsStoppedByWhoeverFindsTheTimeOver(t *testing.T) {
	b, calls := newBench(t, 2), make(chan time.Duration, 99)
	clk := doze(b)
	b.pod("p0")
	var asleep, again atomic.Bool
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		again.Store(again.Load() || asleep.Load() && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/leases/"))
		return false
	})
	b.start("p0", func(o *allocator.Options) {
		o.FenceAfter, o.Fenced = allocator.MinFenceAfter, func(by time.Duration) {
			if calls <- by; again.Load() {
				t.Error("the work is stopped although the pod has a Lease again")
			}
		}
	})
	b.until("an id", has(0))
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
		t.Error("nobody has stopped the work")
	}
	b.until("the id again", has(0))
}

func TestAPodFollowsItsOwner(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	stops := make(chan allocator.Stop, 9)
	b.start("p0", func(o *allocator.Options) {
		o.Stop = func(_ context.Context, s allocator.Stop) error { stops <- s; return nil }
	})
	b.until("the first id", has(0))
	b.api.Change("ReplicaSet", "rs-1", func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
	b.api.Remove(apifake.Deployment, apifake.Worker)
	owned := func(kind string) func(map[string]identity.Identity) bool {
		return func(now map[string]identity.Identity) bool {
			return now["p0"].Assigned() && now["p0"].Owner.Kind == kind
		}
	}
	b.until("the id of the ReplicaSet, which nobody owns", owned("ReplicaSet"))
	b.api.Put(apifake.Owner(1))
	b.api.Change("ReplicaSet", "rs-1", func(o *unstructured.Unstructured) { o.SetOwnerReferences(replicaSet("rs-1", "1").GetOwnerReferences()) })
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
		b.pod("p0")
		b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
			if q := r.URL.Query(); strings.HasSuffix(r.URL.Path, "/"+resource) && q.Has("watch") && strings.HasPrefix(q.Get("fieldSelector"), "metadata.name=") {
				q.Set("fieldSelector", "metadata.name=nobody")
				r.URL.RawQuery = q.Encode()
			}
			return false
		})
		b.start("p0", nil)
		b.until("its id", has(0))
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
	b.start("p0", stubborn)
	b.start("p1", stubborn)
	b.until("two ids", has(0, 1))
	b.scale(1)
	<-stopping
	b.scale(2)
	<-called
	b.until("both ids again", has(0, 1))
}

func TestAWriteThatIsNotKeptIsNoLock(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	var writes atomic.Int32
	b.api.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/pods/p0") || writes.Add(1) > 2 {
			return false
		}
		w.Header().Set("Content-Type", "application/json") // an admission policy has removed all that the patch brings
		meta := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
		pod := b.api.Get(apifake.Pods, "p0")
		meta.Name, meta.Namespace, meta.UID, meta.Labels, meta.ResourceVersion = "p0", apifake.Namespace, pod.GetUID(), pod.GetLabels(), pod.GetResourceVersion()
		_ = json.NewEncoder(w).Encode(meta) // the client may be gone
		return true
	})
	b.start("p0", nil)
	b.until("the id, once the write is kept", has(0))
	if writes.Load() < 3 {
		t.Errorf("it has an id after %d writes, of which two were not kept", writes.Load())
	}
}

func TestPartitionsOfAPodThatIsGoneGoToTheOthers(t *testing.T) {
	b := newBench(t, 2)
	b.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{"idalloc.dev/partition-count": "12", "idalloc.dev/partition-failover-after": "1ms"})
	})
	divides := func(o *allocator.Options) { o.Divides = true }
	b.pod("p0")
	b.pod("p1")
	b.start("p0", divides)
	p1 := b.start("p1", divides)
	b.until("a half for each", func(now map[string]identity.Identity) bool {
		return now["p0"].Partitions.Owned().Len() == 6 && now["p1"].Partitions.Owned().Len() == 6
	})
	p1.kill() // and no pod waits for its slot
	b.api.Remove(apifake.Pods, "p1")
	b.until("all for the one that is left", func(now map[string]identity.Identity) bool { return now["p0"].Partitions.Owned().Len() == 12 })
}
