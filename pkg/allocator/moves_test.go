package allocator_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// A Deployment is deleted without its ReplicaSet. A pod that the ReplicaSet makes after that has another owner than the pods before it,
// whose processes may not have heard of it.
func TestANewPodGetsNoIDUnderWhichAnotherStillWorksForTheFormerOwner(t *testing.T) {
	b := newBench(t, 2)
	b.locks("old", receipt.Share{ID: 0})
	b.api.Change("ReplicaSet", "rs-1", func(o *unstructured.Unstructured) {
		o.SetOwnerReferences(nil)
		if err := unstructured.SetNestedField(o.Object, int64(2), "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
	})
	b.api.Remove(apifake.Deployment, apifake.Worker)
	b.works("new", nil)
	b.until("the other id under the ReplicaSet", has(1))
	if !b.api.Await(t.Context(), func() bool {
		return assignment.Decode(b.api.Get("ReplicaSet", "rs-1").GetAnnotations()).State.Slots[0] == "old"
	}) {
		t.Error("the map does not say who locks id 0")
	}
	b.pod("third")
	b.start("third", nil)
	b.api.Change("Pod", "old", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
	b.api.Remove("Pod", "old")
	b.until("its id when it is gone", has(0, 1))
}

// The row names the giver until the next plan. If the giver cannot, the taker must, although it hears of nothing.
func TestAPartitionIsTakenAlthoughItsGiverOrItsTakerEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		ends  func(b *bench)
		takes string
		has   int
	}{
		"the giver freezes":    {func(b *bench) { <-b.t.Context().Done() }, "p1", 6},
		"the taker disappears": {func(b *bench) { b.api.Remove(apifake.Pods, "p1") }, "p0", 12},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			b.annotate(map[string]string{assignment.PartitionCountKey: "12", assignment.PartitionFailoverAfterKey: "1ms"})
			b.pod("p0")
			b.pod("p1")
			var once sync.Once
			b.start("p0", func(o *allocator.Options) {
				o.Divides, o.Observer = true, on(func(_ event.Yielded) { once.Do(func() { tc.ends(b) }) })
			})
			b.until("all for one", worksOn("p0", 12))
			b.start("p1", divides)
			b.until("the partitions of a live pod", func(now map[string]identity.Identity) bool { return now[tc.takes].Partitions.Owned().Len() == tc.has })
		})
	}
}

// working has the pod work under an id until its Stop has returned.
func (b *bench) working(pod string, divides bool, stopsIn time.Duration) {
	b.start(pod, func(o *allocator.Options) {
		o.Divides = divides
		o.Publish = func(id identity.Identity) {
			if id.Assigned() {
				b.publish(pod, id)
			}
		}
		o.Stop = func(_ context.Context, s allocator.Stop) error {
			if b.clk.Sleep(stopsIn); s.All {
				b.publish(pod, identity.Pending(pod, apifake.Namespace))
			}
			return nil
		}
	})
}

// step is what is done to the owners, and the owner whose ids the pods have after that.
type step struct {
	does  func(b *bench, wish map[string]string)
	owner string
}

// The controller of the pods changes while they work.
func TestNoIDIsWorkedOnTwiceWhilePodsMoveToAnotherOwner(t *testing.T) {
	orphan := func(b *bench, wish map[string]string) {
		b.counts(kinds.ReplicaSet, "rs-1", wish)
		b.api.Remove(apifake.Deployment, apifake.Worker)
	}
	for name, steps := range map[string][]step{
		"deleted without its pods, and made again": {{orphan, "ReplicaSet/rs-1"}, {func(b *bench, wish map[string]string) {
			b.adopt(kinds.ReplicaSet, "rs-1", b.counts(apifake.Deployment, apifake.Worker, wish))
		}, "Deployment/worker"}},
		"deleted without its pods, and made under another name": {{func(b *bench, wish map[string]string) {
			orphan(b, wish)
			b.adopt(kinds.ReplicaSet, "rs-1", b.counts(apifake.Deployment, "w2", wish))
		}, "Deployment/w2"}},
		"pods of another ReplicaSet": {{func(b *bench, wish map[string]string) {
			by := b.counts(kinds.ReplicaSet, "rs-2", wish)
			b.adopt(apifake.Pods, "p0", by)
			b.adopt(apifake.Pods, "p1", by)
		}, "ReplicaSet/rs-2"}},
	} {
		t.Run(name, func(t *testing.T) { newBench(t, 2).moves(nil, 0, steps) })
		t.Run(name+", with partitions", func(t *testing.T) {
			newBench(t, 2).moves(map[string]string{assignment.PartitionCountKey: "12"}, 6, steps)
		})
	}
}

// moves has two pods work on so many partitions each, before the first step and after each.
func (b *bench) moves(wish map[string]string, each int, steps []step) {
	b.t.Helper()
	under := func(owner string) func(now map[string]identity.Identity) bool {
		return func(now map[string]identity.Identity) bool {
			for _, id := range now {
				if id.Owner.String() != owner || id.Partitions.Owned().Len() != each {
					return false
				}
			}
			return has(0, 1)(now)
		}
	}
	b.annotate(wish)
	for i, pod := range []string{"p1", "p0"} { // so that a plan for both would give each the id of the other
		b.pod(pod)
		b.working(pod, wish != nil, time.Duration(10-9*i)*time.Second) // and the work on id 0 stops late
		b.until("an id", func(now map[string]identity.Identity) bool { return now[pod].Assigned() && now[pod].ID == i })
	}
	b.until("work", under("Deployment/worker"))
	for _, s := range steps {
		s.does(b, wish)
		b.until("work under "+s.owner, under(s.owner))
	}
}

// A Deployment and its ReplicaSet are deleted without the pods, and made again.
func TestPodsThatNothingControlsKeepTheirIDs(t *testing.T) {
	b := newBench(t, 2)
	for _, pod := range []string{"p0", "p1", "p2"} {
		b.pod(pod)
	}
	keeps := func(o *allocator.Options) {
		o.Stop = func(_ context.Context, s allocator.Stop) error {
			t.Errorf("work is stopped: %+v", s)
			return nil
		}
	}
	b.works("p0", keeps)
	restarts := b.works("p1", nil)
	waiter := b.start("p2", nil)
	b.await("p2 waits", func() bool { return b.says("p2", receipt.Waits) })

	looks := b.times(asks(http.MethodGet, "/pods/p0"))
	b.api.Remove(apifake.Deployment, apifake.Worker)
	b.api.Remove("ReplicaSet", "rs-1")
	for _, pod := range []string{"p0", "p1", "p2"} {
		b.adopt("Pod", pod)
	}
	for range 2 { // it reads its pod to find another owner, and again when it has found none
		<-looks
	}
	if now := b.shows("p0"); !now.Assigned() || now.Count != 2 {
		t.Errorf("p0 has %+v", now)
	}
	waiter.kill()
	restarts.kill()
	for _, pod := range []string{"p1", "p2"} {
		again := b.start(pod, nil)
		b.await(pod+" says what it waits for", func() bool { return strings.Contains(again.alloc.Waiting(), "Deployment/worker in namespace") })
	}

	b.api.Put(apifake.ReplicaSet("rs-1", "1"))
	b.counts(apifake.Deployment, apifake.Worker, nil)
	b.scale(3)
	for _, pod := range []string{"p0", "p1", "p2"} {
		b.adopt("Pod", pod, *metav1.NewControllerRef(apifake.ReplicaSet("rs-1", "1"), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}))
	}
	b.until("ids for all", has(0, 1, 2))
	b.until("the count", func(now map[string]identity.Identity) bool { return now["p0"].Count == 3 })
	if now := b.shows("p0"); now.ID != 0 {
		t.Errorf("p0 has id %d", now.ID)
	}
}

func TestAPodWithoutAGracePeriodIsWarned(t *testing.T) {
	for name, tc := range map[string]struct {
		grace int64
		fence time.Duration
		want  bool
	}{
		"no time":                 {0, 0, true},
		"no time, in strict mode": {0, time.Minute, false},
		"a second":                {1, 0, false},
	} {
		b := newBench(t, 1)
		b.pod("p0")
		b.api.Change("Pod", "p0", func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(o.Object, tc.grace, "spec", "terminationGracePeriodSeconds"); err != nil {
				t.Fatal(err)
			}
		})
		var said atomic.Bool
		b.works("p0", func(o *allocator.Options) {
			o.FenceAfter = tc.fence
			o.Log = funcr.New(func(_, line string) { said.Store(said.Load() || strings.Contains(line, "no grace period")) }, funcr.Options{})
		})
		if said.Load() != tc.want {
			t.Errorf("%s: the log warns: %t", name, said.Load())
		}
	}
}

// The Role of a Deployment's pods does not permit their ReplicaSet, and users seldom expect that they need it.
func TestAPodWorksOnForADeletedDeploymentIfItMayNotFollowItsReplicaSet(t *testing.T) {
	b := newBench(t, 1)
	refused, asks := b.refuse(http.StatusForbidden, metav1.StatusReasonForbidden,
		`replicasets.apps "rs-1" is forbidden: User "a" cannot list resource "replicasets"`,
		func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/replicasets")
		})
	refused.Store(true)
	b.works("p0", func(o *allocator.Options) {
		o.Stop = func(context.Context, allocator.Stop) error {
			if refused.Load() {
				t.Error("its work is stopped")
			}
			return nil
		}
	})
	b.adopt("ReplicaSet", "rs-1")
	b.api.Remove(apifake.Deployment, apifake.Worker)
	for range 2 {
		<-asks
	}
	if now := b.shows("p0"); !now.Assigned() {
		t.Errorf("it has %+v", now)
	}
	refused.Store(false)
	b.until("its id of the ReplicaSet", func(now map[string]identity.Identity) bool {
		return now["p0"].Assigned() && now["p0"].Owner.Kind == "ReplicaSet"
	})
}
