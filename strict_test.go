package idalloc_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/boottime"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/metrics/collector"
)

// machine is the clock of a machine that can be suspended for a while: its boot time advances meanwhile. Timers wait for resume, so that what
// happens before shows what a process sees that looks at the clock by itself.
type machine struct {
	clock.RealClock

	mu      sync.Mutex
	slept   time.Duration
	resumed chan struct{} // closed and replaced by resume
}

func newMachine() *machine { return &machine{resumed: make(chan struct{})} }

func (m *machine) suspend(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slept += d
}

func (m *machine) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.resumed)
	m.resumed = make(chan struct{})
}

// BootTime implements boottime.Source.
func (m *machine) BootTime() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return boottime.Now() + m.slept
}

// BootWait implements boottime.Source.
func (m *machine) BootWait(until time.Duration, done <-chan struct{}) {
	for {
		m.mu.Lock()
		left, resumed := until-boottime.Now()-m.slept, m.resumed
		m.mu.Unlock()
		if left <= 0 {
			return
		}
		select {
		case <-m.After(left):
		case <-resumed:
		case <-done:
			return
		}
	}
}

// strict returns the options of worker-0 with a fence-after of a minute on this machine.
func strict(c *cluster, m *machine) idalloc.Options {
	o := c.options()
	o.FenceAfter, o.Clock = time.Minute, m
	return o
}

// Without contact for the fence-after, the id ends by the clock alone, and comes back with the contact.
func TestTheWorkEndsWithoutContact(t *testing.T) {
	c, m := clusterOf(t), newMachine()
	calls := 0
	err := idalloc.Run(t.Context(), strict(c, m), func(ctx context.Context, id idalloc.Identity) error {
		if calls++; calls > 1 {
			return nil
		}
		if ctx.Err() != nil || id.ID != 0 {
			t.Errorf("with contact: %v, %v", id, ctx.Err())
		}
		m.suspend(2 * time.Minute)
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), idalloc.ErrFenced) {
			t.Errorf("after two minutes without contact: %v", context.Cause(ctx))
		}
		m.resume()
		return context.Cause(ctx)
	})
	if err != nil || calls != 2 {
		t.Errorf("after %d calls Run returned %v", calls, err)
	}
	checkReleased(t, c, 1)
}

// After a suspend the loop may notice that the time is over before the goroutine that ends the context runs. From then on the Lease is forgotten, and
// the work sees that its id is gone all the same.
func TestTheContextIsOverAsSoonAsTheIDIs(t *testing.T) {
	c := clusterOf(t)
	i, err := idalloc.StartRun(t.Context(), strict(c, newMachine()))
	if err != nil {
		t.Fatal(err)
	}
	id, err := i.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i.CallFenced(t.Context(), id, func(ctx context.Context, _ idalloc.Identity) error {
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), idalloc.ErrFenced) {
			t.Errorf("the id is fenced, and the context says %v", context.Cause(ctx))
		}
		return nil
	})
	closes(t, i)
}

// A function that only waits for the end of its context hears of the fence, too.
func TestWorkThatOnlyWaitsIsFenced(t *testing.T) {
	c, m := clusterOf(t), newMachine()
	calls := 0
	err := idalloc.Run(t.Context(), strict(c, m), func(ctx context.Context, _ idalloc.Identity) error {
		if calls++; calls > 1 {
			return nil
		}
		derived, cancel := context.WithCancel(ctx) // it does not ask Err of the context that it is derived from
		defer cancel()
		c.api.Away(true)
		m.suspend(2 * time.Minute)
		m.resume()
		<-derived.Done()
		if cause := context.Cause(derived); !errors.Is(cause, idalloc.ErrFenced) {
			t.Errorf("the work ends because of %v", cause)
		}
		c.api.Away(false)
		return derived.Err()
	})
	if err != nil || calls != 2 {
		t.Errorf("after %d calls Run returned %v", calls, err)
	}
}

func TestAnInstanceIsFencedByTheClock(t *testing.T) {
	c, m := clusterOf(t), newMachine()
	registry := prometheus.NewPedanticRegistry()
	o := strict(c, m)
	var err error
	if o.Metrics, err = collector.Register(registry); err != nil {
		t.Fatal(err)
	}
	i, err := idalloc.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := i.Wait(t.Context()); err != nil || !id.Assigned() || !i.Current().Assigned() {
		t.Fatal(id, err)
	}
	c.scale(4) // what it hears later shows that its loop has begun to wait
	for id := range i.Changes() {
		if id.Count == 4 {
			break
		}
	}
	m.suspend(2 * time.Minute)
	if id := i.Current(); id.State != identity.StateFenced || id.Assigned() {
		t.Errorf("after two minutes without contact it is %v", id)
	}
	held := "# HELP idalloc_id_held Whether the instance holds an id and its program may act under it (1), or not (0).\n# TYPE idalloc_id_held gauge\nidalloc_id_held 0\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(held), "idalloc_id_held"); err != nil {
		t.Error(err)
	}
	c.api.Away(true)
	m.resume()
	ended, end := context.WithCancel(t.Context())
	end()
	if id, err := i.Wait(ended); err == nil || id.Assigned() {
		t.Errorf("without contact Wait returns %v, %v", id, err)
	}
	for id := range i.Changes() {
		if id.State == identity.StateFenced {
			break
		}
	}
	c.api.Away(false)
	if id, err := i.Wait(t.Context()); err != nil || id.ID != 0 {
		t.Errorf("with contact again: %v, %v", id, err)
	}
	closes(t, i)
}
