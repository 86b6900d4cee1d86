package idalloc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/apifake"
)

// yard is a Deployment of two pods with four partitions, and who works on which.
type yard struct {
	t          *testing.T
	api        *apifake.Server
	strategies map[string]placement.Strategy // of the program

	mu      sync.Mutex
	works   map[int]string
	changed chan struct{}
}

func newYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{t: t, api: apifake.New(t), works: map[int]string{}, changed: make(chan struct{}, 1)}
	owner := apifake.Owner(2)
	owner.SetAnnotations(map[string]string{assignment.PartitionCountKey: "4"})
	y.api.Put(owner)
	y.api.Put(apifake.ReplicaSet("rs", "1"))
	return y
}

// pod makes a pod and returns its options.
func (y *yard) pod(name string) Options {
	y.api.Put(apifake.PodOf(name, "rs"))
	return y.options(name)
}

func (y *yard) options(name string) Options {
	return Options{PodName: name, PodNamespace: apifake.Namespace, Config: y.api.Config(), Log: logr.Discard(), Strategies: y.strategies}
}

// run runs a program in a pod until the returned function is called, which waits for its end.
func (y *yard) run(name string) (end func()) {
	y.pod(name)
	return y.again(name)
}

// again runs one in a pod that is there.
func (y *yard) again(name string) (end func()) { return y.program(name, func(int) {}) }

// program is again, with something that each call does before it returns.
func (y *yard) program(name string, last func(number int)) (end func()) {
	o := y.options(name)
	ctx, cancel := context.WithCancel(y.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- RunPartitions(ctx, o, func(ctx context.Context, p Partition) error {
			y.begin(name, p.Number)
			defer y.end(p.Number)
			<-ctx.Done()
			last(p.Number)
			return context.Cause(ctx)
		})
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			y.t.Error(err)
		}
	}
}

func (y *yard) begin(pod string, number int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if other := y.works[number]; other != "" {
		y.t.Errorf("%s and %s work on partition %d", pod, other, number)
	}
	y.works[number] = pod
	y.tell()
}

func (y *yard) end(number int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.works, number)
	y.tell()
}

func (y *yard) tell() {
	select {
	case y.changed <- struct{}{}:
	default:
	}
}

// until waits until each of the pods works on so many partitions.
func (y *yard) until(want map[string]int) {
	y.t.Helper()
	late := time.After(time.Minute)
	for {
		now := map[string]int{}
		y.mu.Lock()
		for _, pod := range y.works {
			now[pod]++
		}
		y.mu.Unlock()
		if fmt.Sprint(now) == fmt.Sprint(want) {
			return
		}
		select {
		case <-y.changed:
		case <-late:
			y.t.Fatalf("the work is done by %v, want %v", now, want)
		}
	}
}

func TestAStrategyOfTheProgramsOwnDividesThePartitions(t *testing.T) {
	y := newYard(t)
	y.strategies = map[string]placement.Strategy{"highest": func(in placement.Input) placement.Owners {
		owners := placement.Owners{}
		for _, id := range in.Members {
			owners[id] = placement.Set{}
		}
		if len(in.Members) > 0 {
			owners[slices.Max(in.Members)] = placement.Between(0, in.Partitions-1)
		}
		return owners
	}}
	y.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{assignment.PartitionCountKey: "4", assignment.PartitionStrategyKey: "highest"})
	})
	defer y.run("a")()
	y.until(map[string]int{"a": 4})
	defer y.run("b")()
	y.until(map[string]int{"b": 4})
}

func TestPartitionsMoveBetweenPods(t *testing.T) {
	y := newYard(t)
	endA := y.run("a")
	y.until(map[string]int{"a": 4})
	endB := y.run("b")
	y.until(map[string]int{"a": 2, "b": 2})
	endA()
	y.until(map[string]int{"b": 2}) // it is not known yet that a does not come back
	endB()
	y.until(map[string]int{})
}

// The process before it was killed while it worked, and so were the two before that.
func TestAProgramThatDiesForTheThirdTimeLeavesItsPartitionsToOthers(t *testing.T) {
	y := newYard(t)
	y.pod("b")
	y.api.Change(apifake.Pods, "b", func(o *unstructured.Unstructured) {
		apifake.Says(o, receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: 1, Of: 4, Partitions: placement.Of(2, 3)}, Rank: 3})
	})
	y.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{
			assignment.PartitionCountKey: "4", assignment.Key: `{"0":"a","1":"b"}`,
			assignment.PartitionOwnersKey: `{"count":4,"strategy":"sticky","owners":{"0":"0-1","1":"2-3"}}`,
		})
	})
	endA := y.run("a")
	y.until(map[string]int{"a": 2})
	endB := y.again("b")
	y.until(map[string]int{"a": 4})
	endB()
	endA()
}

// A program with a loop of its own sees in Owned what its Stop is asked about.
func TestAnInstanceYieldsWhatOwnedDoesNotReturn(t *testing.T) {
	y := newYard(t)
	o := y.pod("a")
	o.Partitions = true
	stopped := make(chan placement.Set, 1)
	known := make(chan struct{})
	var m *Instance
	o.Stop = func(_ context.Context, stop Stopping) error {
		<-known
		for _, p := range m.Owned() {
			if stop.Partitions.Contains(p.Number) {
				t.Errorf("partition %d is to stop, and may be worked on", p.Number)
			}
		}
		stopped <- stop.Partitions
		return nil
	}
	var err error
	if m, err = Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	close(known)
	for len(m.Owned()) < 4 {
		<-m.Changes()
	}
	end := y.run("b")
	if set := <-stopped; set.Len() != 2 {
		t.Errorf("asked about %s", set)
	}
	y.until(map[string]int{"b": 2})
	for _, p := range m.Owned() {
		if p.Instance.Partitions.Enabled() || p.Instance.ID != 0 || p.Count != 4 || p.Token == 0 {
			t.Errorf("%+v", p)
		}
	}
	end()
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := m.Owned(); len(left) > 0 {
		t.Errorf("after Close it owns %+v", left)
	}
}

// Calls go on when a callback panics. The slot stays until they have returned.
func TestAPanicOfChangedGivesNothingAwayThatIsWorkedOn(t *testing.T) {
	y := newYard(t)
	o, working := y.pod("a"), make(chan struct{})
	o.Changed = func(Identity) {
		<-working
		panic(errBroken)
	}
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		_ = RunPartitions(t.Context(), o, func(ctx context.Context, p Partition) error {
			y.begin("a", p.Number)
			if p.Number == 0 {
				close(working)
			}
			<-ctx.Done()
			if pod := y.api.Get(apifake.Pods, "a"); !strings.Contains(pod.GetAnnotations()[receipt.Key], `"id":`) {
				t.Errorf("partition %d is worked on, and the receipt is %s", p.Number, pod.GetAnnotations()[receipt.Key])
			}
			y.end(p.Number)
			return context.Cause(ctx)
		})
	}()
	if got := <-ended; got != errBroken { //nolint:errorlint // any value may be recovered
		t.Errorf("recovered %v", got)
	}
	y.until(map[string]int{})
}
