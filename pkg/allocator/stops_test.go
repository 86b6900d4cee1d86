package allocator_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/apifake"
)

// showsStops checks each time that a program is asked to stop that what was published last says so, and nothing else. No id is published without a token.
func showsStops(t *testing.T, o *allocator.Options) {
	t.Helper()
	var mu sync.Mutex
	var last identity.Identity
	var asked placement.Set // by calls that have not returned
	publish, stop := o.Publish, o.Stop
	o.Publish = func(id identity.Identity) {
		mu.Lock()
		last = id
		mu.Unlock()
		if id.Assigned() && id.Token == 0 {
			t.Errorf("%+v was published, without a token", id)
		}
		publish(id)
	}
	if stop == nil {
		return
	}
	o.Stop = func(ctx context.Context, s allocator.Stop) error {
		mu.Lock()
		asked = asked.Union(s.Partitions)
		switch stops := last.Partitions.Stopping(); {
		case s.All && last.Assigned():
			t.Errorf("all work is to stop, and %+v was published last", last)
		case !s.All && (!last.Assigned() || !s.Partitions.Subset(stops) || !stops.Subset(asked) || last.Partitions.Stop < s.Number):
			t.Errorf("the work on %s is to stop by %d, and %+v was published last", s.Partitions, s.Number, last)
		}
		mu.Unlock()
		err := stop(ctx, s)
		mu.Lock()
		defer mu.Unlock()
		asked = asked.Minus(s.Partitions)
		return err
	}
}

// published is what an earlier process of p0 published.
func published(owned, stopping placement.Set) identity.Identity {
	id := identity.Pending("p0", apifake.Namespace)
	id.State, id.ID, id.Token, id.Count = identity.StateAssigned, 0, 1, 2
	id.Partitions = identity.PartitionsOf(12, []identity.Share{{Set: owned, Token: 1}}, stopping, 4)
	return id
}

// A process resumes the work of the one before it, and some of it is to stop before it has confirmed the rest.
func TestAProcessThatResumesTellsWhatIsToStop(t *testing.T) {
	all, rest := placement.Between(0, 11), placement.Between(0, 5)
	both := `{"count":12,"strategy":"sticky","owners":{"0":"0-5","1":"6-11"}}`
	for name, tc := range map[string]struct {
		row   string
		other placement.Set
		left  identity.Identity
	}{
		"another pod locks it, too":        {both, all.Minus(rest), published(all, placement.Set{})},
		"another id is to have it":         {`{"count":12,"strategy":"sticky","owners":{"0":"0-11","1":""}}`, placement.Set{}, published(all, placement.Set{})},
		"the process before asked for it":  {`{"count":12,"strategy":"sticky","owners":{"0":"0-11","1":""}}`, placement.Set{}, published(rest, all.Minus(rest))},
		"and it had asked for a part only": {both, all.Minus(rest), published(all.Minus(placement.Of(7)), placement.Of(7))},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			b.annotate(map[string]string{
				assignment.PartitionCountKey: "12", assignment.Key: `{"0":"p0","1":"p1"}`, assignment.PartitionOwnersKey: tc.row,
			})
			b.locks("p0", receipt.Share{ID: 0, Of: 12, Partitions: all})
			b.locks("p1", receipt.Share{ID: 1, Of: 12, Partitions: tc.other})
			asked := make(chan allocator.Stop, 9)
			b.start("p0", func(o *allocator.Options) {
				o.Publish = func(identity.Identity) {}
				o.Divides, o.LastStop, o.Left = true, 4, func(string) identity.Identity { return tc.left }
				o.Stop = func(_ context.Context, s allocator.Stop) error {
					asked <- s
					return nil
				}
			})
			if s := <-asked; s.All || s.Partitions.Len() != 6 || s.Number != 5 {
				t.Errorf("asked to stop %+v", s)
			}
			if !b.api.Await(t.Context(), func() bool {
				r, _ := receipt.Of(b.api.Get(apifake.Pods, "p0"), "Deployment/worker")
				return r.Share.Partitions.Len() == 6
			}) {
				t.Error("what has stopped stays locked")
			}
		})
	}
}

// owns waits until p0 shows so many partitions, of which none is to stop.
func (b *bench) owns(many int) {
	b.t.Helper()
	b.until("so many partitions", func(now map[string]identity.Identity) bool {
		p := now["p0"].Partitions
		return now["p0"].Assigned() && p.Owned().Len() == many && p.Stopping().Empty()
	})
}

// What stops while the API server is away could be let go of only when it is back.
func TestNothingIsLetGoOfWhileTheAPIServerIsAway(t *testing.T) {
	for name, stops := range map[string]bool{"the work has stopped": true, "the work stops": false} {
		for what, change := range map[string]func(b *bench){
			"partitions": func(b *bench) {
				b.pod("p1")
				b.start("p1", divides)
			},
			"the slot": func(b *bench) {
				b.scale(1)
				b.newer("p1")
				b.start("p1", nil)
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				b := newBench(t, 2)
				b.annotate(map[string]string{assignment.PartitionCountKey: "12"})
				b.pod("p0")
				asked, stale := make(chan allocator.Stop, 9), make(chan bool, 9)
				away := make(chan struct{})
				b.start("p0", func(o *allocator.Options) {
					o.Divides, o.Stale = true, func(is bool) { stale <- is }
					o.Stop = func(ctx context.Context, s allocator.Stop) error {
						asked <- s
						<-away
						if stops {
							return nil
						}
						<-ctx.Done()
						return ctx.Err()
					}
				})
				b.owns(12)
				b.await("the receipt says all tokens", b.noted(true)) // a write that fails has it read its pod first
				change(b)
				<-asked
				b.api.Away(true)
				for is := range stale {
					if is {
						break
					}
				}
				close(away)
				b.owns(12)
				b.api.Away(false)
			})
		}
	}
}

// others are pods that should not have the slot of a pod that works: one that failed, one of another owner, and one that gave its slot up.
func (b *bench) others() {
	for pod, state := range map[string]receipt.State{"failed": receipt.Waits, "strange": receipt.Waits, "gave": receipt.GaveUp} {
		b.pod(pod)
		b.receipt(pod, receipt.Receipt{State: state, Share: receipt.Nothing()})
	}
	b.api.Change(apifake.Pods, "failed", func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"phase": "Failed"} })
	b.adopt(apifake.Pods, "strange")
}

func obstacles(to chan<- event.NotHandedOver) event.Observer {
	return on(func(e event.NotHandedOver) { to <- e })
}

// Only the user's keys stop work. The map, the row and requests propose.
func TestNothingThatIsWrittenIntoIdallocsOwnKeysStopsWork(t *testing.T) {
	handover := func(by string) map[string]string {
		return map[string]string{assignment.HandoverKey: `{"0":"` + by + `"}`}
	}
	whyNot := map[string]string{
		handover("p1")[assignment.HandoverKey]: "it does not wait for a slot", handover("gave")[assignment.HandoverKey]: "it does not wait for a slot",
		handover("failed")[assignment.HandoverKey]: "it does not live", handover("ghost")[assignment.HandoverKey]: "it does not live",
		handover("strange")[assignment.HandoverKey]: "it is of no newer revision, or Kubernetes keeps this pod",
	}
	row := func(text string) map[string]string { return map[string]string{assignment.PartitionOwnersKey: text} }
	without := func(text string) map[string]string {
		return map[string]string{assignment.PartitionOwnersKey: text, assignment.PartitionCountKey: ""}
	}
	for name, forged := range map[string]map[string]string{
		"no partitions":                      row(`{"count":0,"strategy":"sticky","owners":{}}`),
		"none, and no user's key":            without(`{"count":0,"strategy":"sticky","owners":{"0":"0-5","1":"6-11"}}`),
		"fewer, and no user's key":           without(`{"count":3,"strategy":"sticky","owners":{"0":"0-1","1":"2"}}`),
		"fewer":                              row(`{"count":4,"strategy":"sticky","owners":{"0":"0-1","1":"2-3"}}`),
		"others":                             row(`{"count":12,"strategy":"sticky","owners":{"0":"6-11","1":"0-5"}}`),
		"all for one":                        row(`{"count":12,"strategy":"sticky","owners":{"0":"0-11","1":""}}`),
		"another strategy":                   row(`{"count":12,"strategy":"primary","owners":{"0":"0-5","1":"6-11"}}`),
		"the map of other pods":              {assignment.Key: `{"0":"x","1":"y"}`},
		"the holders exchanged":              {assignment.Key: `{"0":"p1","1":"p0"}`},
		"a damaged map":                      {assignment.Key: "{"},
		"no map":                             {assignment.Key: ""},
		"a slot for its neighbour":           handover("p1"),
		"a slot for one that failed":         handover("failed"),
		"a slot for one of another owner":    handover("strange"),
		"a slot for one that gave up":        handover("gave"),
		"a slot for a pod that is not there": handover("ghost"),
	} {
		t.Run(name, func(t *testing.T) {
			var forgery atomic.Bool
			refused := make(chan event.NotHandedOver, 9)
			b := newBench(t, 2)
			b.annotate(map[string]string{assignment.PartitionCountKey: "12", "deployment.kubernetes.io/revision": "1"})
			for _, pod := range []string{"p0", "p1"} {
				b.pod(pod)
				b.start(pod, func(o *allocator.Options) {
					o.Divides, o.Stop = true, func(_ context.Context, s allocator.Stop) error {
						if forgery.Load() {
							t.Errorf("%s is to stop %+v", pod, s)
						}
						return nil
					}
					o.Observer = obstacles(refused)
				})
				b.until("an id", func(now map[string]identity.Identity) bool { return now[pod].Assigned() })
			}
			b.until("a half for each", halves(12))
			b.others()
			forgery.Store(true)
			was := b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations()
			next := maps.Clone(was)
			for key, text := range forged {
				if next[key] = text; text == "" {
					delete(next, key)
				}
			}
			b.annotate(next)
			b.await("what idalloc writes", func() bool {
				now := b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations()
				return !slices.ContainsFunc(assignment.Keys(), func(key string) bool { return now[key] != was[key] })
			})
			b.until("a half for each", halves(12))
			if why, asks := whyNot[forged[assignment.HandoverKey]]; asks {
				if r := <-refused; r.Why != event.ObstacleDropped || r.Detail != why || r.ID != 0 {
					t.Errorf("the request is refused with %+v, want %s", r, why)
				}
			}
		})
	}
}

// A pod that asks may be slow to say that it waits. The holder refuses it first, and the plan that is to drop the request keeps it.
func TestAPodThatWaitsLaterThanItAsksGetsItsSlot(t *testing.T) {
	b := newBench(t, 1)
	b.works("p0", func(o *allocator.Options) {
		o.Observer = on(func(e event.NotHandedOver) {
			if e.Why == event.ObstacleDropped {
				b.receipt("new", receipt.Receipt{State: receipt.Waits, Share: receipt.Nothing()})
			}
		})
	})
	b.newer("new")
	b.edit(apifake.Deployment, apifake.Worker, func(a map[string]string) { a[assignment.HandoverKey] = `{"0":"new"}` })
	b.await("the holder gives its slot up", func() bool { return b.says("p0", receipt.GaveUp) })
}

// A request of a pod that waits may stay until that has a slot. It stops no pod of the same revision, or of a StatefulSet that keeps the ordinal.
func TestARequestAmongPodsOfOneRevisionStopsNoWork(t *testing.T) {
	for name, start := range map[string]func(b *bench, change func(*allocator.Options)) (holder string, waits func()){
		"Deployment": func(b *bench, change func(*allocator.Options)) (string, func()) {
			b.scale(1)
			b.annotate(map[string]string{"deployment.kubernetes.io/revision": "1"})
			b.works("p0", change)
			return apifake.Deployment, func() {
				b.pod("p1")
				b.start("p1", nil)
			}
		},
		"StatefulSet": func(b *bench, change func(*allocator.Options)) (string, func()) {
			b.pair(change)
			return kinds.StatefulSet, func() { b.ordered("worker-7", nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			refused := make(chan event.NotHandedOver, 9)
			kind, waits := start(b, func(o *allocator.Options) {
				o.Observer = obstacles(refused)
				o.Stop = func(_ context.Context, s allocator.Stop) error {
					t.Errorf("the work is to stop: %+v", s)
					return nil
				}
			})
			waiter := map[string]string{apifake.Deployment: "p1", kinds.StatefulSet: "worker-7"}[kind]
			waits()
			b.await("a waiter", func() bool {
				r, _ := receipt.Of(b.api.Get(apifake.Pods, waiter), kind+"/worker")
				return r.State == receipt.Waits
			})
			var r event.NotHandedOver
			b.await("a refusal", func() bool { // a plan of the waiter may drop the request before the holder has seen it
				b.edit(kind, apifake.Worker, func(a map[string]string) { a[assignment.HandoverKey] = `{"0":"` + waiter + `"}` })
				select {
				case r = <-refused:
					return true
				default:
					return false
				}
			})
			if r.Detail != "it is of no newer revision, or Kubernetes keeps this pod" || r.Requester != waiter {
				t.Errorf("the request is refused with %+v", r)
			}
			b.edit(kind, apifake.Worker, func(a map[string]string) { a[assignment.Key] = "{}" })
			b.await("the map again", func() bool { return b.api.Get(kind, apifake.Worker).GetAnnotations()[assignment.Key] != "{}" })
		})
	}
}

// An id that is no longer a member locks partitions until their work has stopped. If it becomes a member again before that, T3 must cover them.
func TestWhatAnIDLocksWithoutBeingAMemberIsConfirmed(t *testing.T) {
	b := newBench(t, 2)
	b.annotate(map[string]string{
		assignment.PartitionCountKey: "4", assignment.Key: `{"0":"p0","1":"p1"}`, assignment.PartitionOwnersKey: `{"count":4,"strategy":"sticky","owners":{"0":"0-3","1":""}}`,
	})
	b.locks("p0", receipt.Share{ID: 0, Partitions: placement.Between(0, 3)})
	b.locks("p1", receipt.Share{ID: 1, Of: 4, Partitions: placement.Between(0, 3)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.start("p0", func(o *allocator.Options) {
		o.Divides, o.HandsOver = true, true
		o.Publish = func(id identity.Identity) {
			if owned := id.Partitions.Owned(); !owned.Empty() {
				t.Errorf("it works on partitions %s, which p1 locks", owned)
				cancel()
			}
		}
	})
	if !b.api.Await(ctx, func() bool {
		r, _ := receipt.Of(b.api.Get(apifake.Pods, "p0"), "Deployment/worker")
		return r.Share.Partitions.Empty()
	}) {
		t.Error("it does not give way to p1")
	}
}

// The files of an earlier process may name work that its receipt did not lock any more.
func TestAPodThatFindsMoreWorkThanItsReceiptLocksTakesTheRest(t *testing.T) {
	for _, fenceAfter := range []time.Duration{0, allocator.MinFenceAfter} {
		b := newBench(t, 1)
		doze(b)
		b.annotate(map[string]string{assignment.PartitionCountKey: "4"})
		b.pod("p0")
		divides := func(o *allocator.Options) { o.Divides, o.HandsOver, o.FenceAfter = true, true, fenceAfter }
		p0 := b.start("p0", divides)
		b.until("all partitions", worksOn("p0", 4))
		left := b.shows("p0")
		left.Partitions = identity.PartitionsOf(4, []identity.Share{{Set: placement.Between(0, 4), Token: 1}}, placement.Set{}, 0)
		p0.kill()
		taken, stops := make(chan event.Taken, 9), make(chan allocator.Stop, 9)
		b.start("p0", func(o *allocator.Options) {
			divides(o)
			o.Left = func(string) identity.Identity { return left }
			o.Stop = func(ctx context.Context, s allocator.Stop) error {
				stops <- s
				<-ctx.Done()
				return ctx.Err()
			}
			o.Observer = on(func(e event.Taken) { taken <- e })
		})
		if s := <-stops; s.All || s.Partitions.String() != "4" || !s.Lost {
			t.Errorf("fence-after %s: the stop is %+v", fenceAfter, s)
		}
		if e := <-taken; e.Partitions != "0-3" {
			t.Errorf("fence-after %s: it takes %+v", fenceAfter, e)
		}
	}
}

// A pod of the controller has no receipt before it has a slot. It gets that of an older pod which takes for itself, and is asked for it.
func TestAPodBehindItsGateIsGivenASlot(t *testing.T) {
	b := newBench(t, 1)
	b.works("p0", nil)
	b.newer("gated")
	b.api.Change(apifake.Pods, "gated", func(o *unstructured.Unstructured) {
		o.SetLabels(map[string]string{"app": apifake.Worker, receipt.AssignLabel: receipt.ByController})
	})
	b.edit(apifake.Deployment, apifake.Worker, func(a map[string]string) { a[assignment.HandoverKey] = `{"0":"gated"}` })
	b.await("the slot to be given", func() bool {
		r, _ := receipt.Of(b.api.Get(apifake.Pods, "p0"), apifake.Deployment+"/worker")
		return r.State != receipt.Locks
	})
}
