package allocator_test

import (
	"bytes"
	"context"
	"io"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
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
	b.api.Put(apifake.ReplicaSet("rs-1", "1"))
	return b
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
func (b *bench) pod(name string) { b.api.Put(apifake.PodOf(name, "rs-1")) }

// of makes a ReplicaSet of the second revision, and a pod of it.
func (b *bench) of(set, pod string) {
	b.api.Put(apifake.ReplicaSet(set, "2"))
	b.api.Put(apifake.PodOf(pod, set))
}

// rolls has the Deployment say that this revision is the current one.
func (b *bench) rolls(revision string, pods int64) {
	b.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		a := o.GetAnnotations()
		a["deployment.kubernetes.io/revision"] = revision
		o.SetAnnotations(a)
		o.Object["status"] = map[string]any{"replicas": pods, "updatedReplicas": pods - 1, "readyReplicas": int64(1), "availableReplicas": int64(1)}
	})
}

// start starts a process in a pod.
func (b *bench) start(pod string, change func(*allocator.Options)) *process {
	b.t.Helper()
	s := b.api.Store(b.t, b.clk)
	o := allocator.Options{Store: s, Pod: pod, Namespace: apifake.Namespace, Log: logr.Discard(), HandsOver: true, Publish: func(id identity.Identity) { b.publish(pod, id) }}
	if change != nil {
		change(&o)
	}
	showsStops(b.t, &o)
	ctx, end := context.WithCancel(b.t.Context())
	p := &process{bench: b, pod: pod, end: end, done: make(chan error, 1)}
	var err error
	if p.alloc, err = allocator.New(ctx, o); err != nil {
		b.t.Fatal(err)
	}
	go func() { p.done <- p.alloc.Run(ctx) }()
	b.t.Cleanup(func() { p.kill() })
	return p
}

// works starts a process in a pod, which it makes if there is none, and waits for its id.
func (b *bench) works(pod string, change func(*allocator.Options)) *process {
	b.t.Helper()
	if b.api.Get(apifake.Pods, pod) == nil {
		b.pod(pod)
	}
	p := b.start(pod, change)
	b.until("an id of "+pod, assigned(pod))
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

func assigned(pod string) func(now map[string]identity.Identity) bool {
	return func(now map[string]identity.Identity) bool { return now[pod].Assigned() }
}

func has(want ...int) func(map[string]identity.Identity) bool {
	return func(now map[string]identity.Identity) bool { return slices.Equal(ids(now), want) }
}

func (b *bench) scale(count int64) {
	b.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, count, "spec", "replicas"); err != nil {
			b.t.Error(err)
		}
	})
}

// newer makes a pod of a second revision.
func (b *bench) newer(name string) {
	b.rolls("2", 2)
	b.of("rs-2", name)
}

// receipt has a pod say this.
func (b *bench) receipt(pod string, r receipt.Receipt) {
	b.api.Change(apifake.Pods, pod, func(o *unstructured.Unstructured) { apifake.Says(o, r) })
}

// says reports whether the pod's receipt has this state.
func (b *bench) says(pod string, state receipt.State) bool {
	r, _ := receipt.Of(b.api.Get(apifake.Pods, pod), "Deployment/worker")
	return r.State == state
}

// changed answers a patch as if an admission policy had removed all that it brings.
func (b *bench) changed(w http.ResponseWriter, kind, name string) {
	o := b.api.Get(kind, name)
	if kind == apifake.Pods {
		o.Object = map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o.Object["metadata"]}
	}
	w.Header().Set("Content-Type", "application/json")
	body, err := o.MarshalJSON()
	if err != nil {
		b.t.Error(err)
	}
	_, _ = w.Write(body) // the client may be gone
}

func (b *bench) await(what string, is func() bool) {
	b.t.Helper()
	if !b.api.Await(b.t.Context(), is) {
		b.t.Fatal(what)
	}
}

// row is the number of partitions by the row.
func (b *bench) row() int {
	r := assignment.Decode(b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations())
	if r.State.Row == nil {
		return 0
	}
	return r.State.Row.Count
}

func (b *bench) annotate(all map[string]string) {
	b.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) { o.SetAnnotations(maps.Clone(all)) })
}

// quick is a clock that is a hundred times as fast as the real one.
type quick struct {
	clock.RealClock

	start time.Time
}

const speed = 100

func (q quick) Now() time.Time                         { return q.start.Add(speed * time.Since(q.start)) }
func (q quick) Since(t time.Time) time.Duration        { return q.Now().Sub(t) }
func (q quick) NewTimer(d time.Duration) clock.Timer   { return q.RealClock.NewTimer(d / speed) }
func (q quick) After(d time.Duration) <-chan time.Time { return q.RealClock.After(d / speed) }
func (q quick) Sleep(d time.Duration)                  { q.RealClock.Sleep(d / speed) }

// observer hears of events.
type observer func(event.Event)

func (o observer) Observe(e event.Event) { o(e) }

// on has do hear of one kind of event.
func on[E event.Event](do func(E)) event.Observer {
	return observer(func(e event.Event) {
		if e, is := e.(E); is {
			do(e)
		}
	})
}

// note sends something where there is room for it.
func note[T any](to chan<- T, what T) {
	select {
	case to <- what:
	default:
	}
}

// times notes when requests of a kind come.
func (b *bench) times(of func(*http.Request) bool) <-chan time.Time {
	at := make(chan time.Time, 10000)
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if of(r) {
			at <- b.clk.Now()
		}
		return false
	})
	return at
}

// edit changes the annotations of an object.
func (b *bench) edit(kind, name string, change func(annotations map[string]string)) {
	b.api.Change(kind, name, func(o *unstructured.Unstructured) {
		a := o.GetAnnotations()
		if a == nil {
			a = map[string]string{}
		}
		change(a)
		o.SetAnnotations(a)
	})
}

// refuse has the server refuse requests while on is true. Each of them is noted in seen, up to its capacity.
func (b *bench) refuse(code int, reason metav1.StatusReason, message string, of func(*http.Request) bool) (on *atomic.Bool, seen chan struct{}) {
	on, seen = &atomic.Bool{}, make(chan struct{}, 3)
	b.api.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !on.Load() || !of(r) {
			return false
		}
		apifake.Refuse(w, code, reason, message)
		note(seen, struct{}{})
		return true
	})
	return on, seen
}

// asks reports of a request whether it is one of this method to such a path.
func asks(method, path string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method && strings.Contains(r.URL.Path, path) }
}

// seldom fails the test unless one of the next times comes so long after the one before.
func seldom(t *testing.T, long time.Duration, times <-chan time.Time) {
	t.Helper()
	const most = 100
	last := <-times
	for range most {
		at := <-times
		if at.Sub(last) >= long {
			return
		}
		last = at
	}
	t.Errorf("%d times, and never %s between two of them", most, long)
}

// ownReceipt is the receipt on p0, as it stands.
func (b *bench) ownReceipt() string {
	return b.api.Get(apifake.Pods, "p0").GetAnnotations()[receipt.Key]
}

// noted reports whether the receipt of p0 has tokens, so that its next process knows them.
func (b *bench) noted(partitions bool) func() bool {
	return func() bool {
		text := b.ownReceipt()
		return strings.Contains(text, `"token":`) && (!partitions || strings.Contains(text, `"tokens":`))
	}
}

// sends is what a request sends.
func (b *bench) sends(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		b.t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}

// copyOf is a second copy of a request, which a Before does not see as such.
func (b *bench) copyOf(r *http.Request) *http.Request {
	c, err := http.NewRequestWithContext(b.t.Context(), r.Method, b.api.Config().Host+r.URL.RequestURI(), strings.NewReader(b.sends(r))) //nolint:gosec // the test's own server
	if err != nil {
		b.t.Error(err)
	}
	c.Header = r.Header.Clone()
	c.Header.Set("Copy", "yes")
	return c
}

// send sends a request.
func (b *bench) send(r *http.Request) {
	answer, err := http.DefaultClient.Do(r) //nolint:gosec // the test's own server
	if err == nil {
		err = answer.Body.Close()
	}
	if err != nil {
		b.t.Error(err)
	}
}

func divides(o *allocator.Options) { o.Divides = true }

// halves says that the pods p0 and p1 work on a half of so many partitions each.
func halves(all int) func(map[string]identity.Identity) bool {
	return func(now map[string]identity.Identity) bool {
		return worksOn("p0", all/2)(now) && worksOn("p1", all/2)(now)
	}
}

func worksOn(pod string, many int) func(map[string]identity.Identity) bool {
	return func(now map[string]identity.Identity) bool { return now[pod].Partitions.Owned().Len() == many }
}

// locks has a pod lock a slot with partitions.
func (b *bench) locks(pod string, share receipt.Share) {
	b.pod(pod)
	b.receipt(pod, receipt.Receipt{State: receipt.Locks, Share: share, HandsOver: true})
}

// adopt gives an object another controller, or none.
func (b *bench) adopt(kind, name string, by ...metav1.OwnerReference) {
	b.api.Change(kind, name, func(o *unstructured.Unstructured) { o.SetOwnerReferences(by) })
}

// counts puts an owner of two pods there.
func (b *bench) counts(kind, name string, wish map[string]string) metav1.OwnerReference {
	o := apifake.Owner(2)
	o.SetKind(kind)
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetAnnotations(wish)
	b.api.Put(o)
	return *metav1.NewControllerRef(o, o.GroupVersionKind())
}

func strict(o *allocator.Options) { o.FenceAfter = allocator.MinFenceAfter }
