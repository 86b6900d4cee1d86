package idalloc_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// Another pod may ask for the slot only where this process can know that its work has stopped.
func TestWhoHandsOver(t *testing.T) {
	c := clusterOf(t)
	handsOver := func(when string, want bool) {
		t.Helper()
		if r := c.receiptOf(worker0); r.State != receipt.Locks || r.HandsOver != want {
			t.Errorf("%s: the receipt is %+v", when, r)
		}
	}
	stops := func(context.Context, idalloc.Stopping) error { return nil }
	for when, o := range map[string]idalloc.Options{
		"a program that checks Current":                  {},
		"a program that says it stopped":                 {Stop: stops},
		"a program with partitions that checks Current":  {Partitions: true},
		"a program with partitions that says it stopped": {Partitions: true, Stop: stops},
	} {
		stopped := o.Stop
		with := c.options()
		o.PodName, o.PodNamespace, o.Config, o.Log = with.PodName, with.PodNamespace, with.Config, with.Log
		i := holding(t, idalloc.Start, o)
		handsOver(when, stopped != nil)
		closes(t, i)
	}
	err := idalloc.Run(t.Context(), c.options(), func(context.Context, idalloc.Identity) error {
		handsOver("a function", true)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// While the work continues, its pod locks the slot, however long the work takes to stop.
func TestTheSlotStaysUntilTheWorkHasStopped(t *testing.T) {
	t.Run("a function", func(t *testing.T) {
		c := clusterOf(t)
		ctx, stop := context.WithCancel(t.Context())
		err := idalloc.Run(ctx, c.options(), func(work context.Context, _ idalloc.Identity) error {
			c.scale(0)
			<-work.Done()
			if cause := context.Cause(work); !errors.Is(cause, idalloc.ErrRevoked) {
				t.Errorf("the work ends because of %v", cause)
			}
			checkLocked(t, c)
			go func() {
				defer stop()
				<-c.unlocked(worker0)
			}()
			return work.Err()
		})
		if err != nil {
			t.Error(err)
		}
		checkUnlocked(t, c, 0)
	})
	t.Run("an instance", func(t *testing.T) {
		c := clusterOf(t)
		o := c.options()
		asked := make(chan struct{})
		var current func() idalloc.Identity
		o.Stop = func(context.Context, idalloc.Stopping) error {
			if current().Assigned() {
				t.Error("the work is to stop, and its id is still there")
			}
			checkLocked(t, c)
			close(asked)
			return nil
		}
		i, err := idalloc.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		current = i.Current
		if _, err := i.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.scale(0)
		<-asked
		<-c.unlocked(worker0)
		closes(t, i)
	})
}

// Where no function has been called yet, nothing holds a slot that is to be given.
func TestASlotThatNoWorkUses(t *testing.T) {
	c := clusterOf(t)
	i := holding(t, idalloc.StartRun, c.options())
	c.scale(0)
	select {
	case <-c.unlocked(worker0):
	case <-time.After(20 * time.Second):
		t.Error("the slot is kept although no work runs")
	}
	closes(t, i)
}

// A pod whose process died soon after it took the slot gives it back for one that made room, if the work died with that process.
func TestWhatAProcessLeavesThatDied(t *testing.T) {
	for name, tc := range map[string]struct {
		start      func(context.Context, idalloc.Options) (*idalloc.Instance, error)
		partitions bool
		gives      bool
	}{
		"a function":                      {start: idalloc.StartRun, gives: true},
		"work that may outlive it":        {start: idalloc.Start},
		"work on partitions":              {start: idalloc.StartRunPartitions, gives: true},
		"partitions whose work may go on": {start: idalloc.Start, partitions: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(t)
			c.roll()
			o := c.options()
			o.PodName, o.Partitions = "site-new", tc.partitions
			i, err := tc.start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if tc.gives {
				select {
				case <-c.unlocked(o.PodName):
				case <-ctx.Done():
				}
			} else if id, err := i.Wait(ctx); err != nil || id.ID != 0 {
				t.Errorf("%v, %v", id, err)
			}
			if r := c.receiptOf(o.PodName); (r.State == receipt.Locks) == tc.gives || (r.Failures() == 1) != tc.gives {
				t.Errorf("the receipt is %+v", r)
			}
			closes(t, i)
		})
	}
}

// checkLocked checks that nothing gives the slot of worker-0 away. A right program makes it wait in vain.
func checkLocked(t *testing.T, c *cluster) {
	t.Helper()
	select {
	case <-c.unlocked(worker0):
		t.Error("the slot is given while the work continues")
	case <-time.After(100 * time.Millisecond):
	}
}

// Where the pod is another one now, nothing is left to keep and nothing is written, and the program hears why.
func TestAPodThatIsAnotherOneNow(t *testing.T) {
	check := func(t *testing.T, c *cluster) {
		t.Helper()
		if text := c.receiptText(worker0); text != "" {
			t.Errorf("the other pod has the receipt %s", text)
		}
		if slots := c.slots(); slots != `{"0":"worker-0"}` {
			t.Errorf("the map is %s", slots)
		}
	}
	t.Run("a function", func(t *testing.T) {
		c := clusterOf(t)
		calls := 0
		err := idalloc.Run(t.Context(), c.options(), func(work context.Context, _ idalloc.Identity) error {
			calls++
			c.replace()
			<-work.Done()
			if cause := context.Cause(work); !errors.Is(cause, idalloc.ErrLost) {
				t.Errorf("the work ends because of %v", cause)
			}
			return work.Err()
		})
		if !errors.Is(err, allocator.ErrPodGone) || calls != 1 {
			t.Errorf("after %d calls Run returned %v", calls, err)
		}
		check(t, c)
	})
	t.Run("an instance", func(t *testing.T) {
		c := clusterOf(t)
		i := holding(t, idalloc.Start, c.options())
		c.replace()
		for id := range i.Changes() {
			if id.State == identity.StateLost {
				break
			}
		}
		if id, err := i.Wait(t.Context()); id.Assigned() || !errors.Is(err, allocator.ErrPodGone) {
			t.Errorf("Wait returns %v, %v", id, err)
		}
		if err := i.Healthy(); !errors.Is(err, allocator.ErrPodGone) {
			t.Errorf("Healthy returns %v", err)
		}
		if err := i.Close(t.Context()); err != nil {
			t.Errorf("Close returns %v, and there is nothing to release", err)
		}
		check(t, c)
	})
}

// A function that keeps running when the count changes is not called again, and ends with its id.
func TestWorkThatContinuesWhenTheCountChanges(t *testing.T) {
	c := clusterOf(t)
	o := c.options()
	o.KeepOnCountChange = true
	var counts []int
	err := idalloc.Run(t.Context(), o, func(work context.Context, id idalloc.Identity) error {
		if counts = append(counts, id.Count); len(counts) > 1 {
			return nil
		}
		c.scale(5)
		c.scale(0)
		<-work.Done()
		if cause := context.Cause(work); !errors.Is(cause, idalloc.ErrRevoked) {
			t.Errorf("the work ends because of %v", cause)
		}
		c.scale(4)
		return work.Err()
	})
	if err != nil || !slices.Equal(counts, []int{3, 4}) {
		t.Errorf("%v after calls with the counts %v", err, counts)
	}
}

// Each would take the receipt of the other for damage, and both would act.
func TestASecondInstanceOfThePodIsRefused(t *testing.T) {
	c := clusterOf(t)
	o := c.options()
	o.PodName = "worker-" + strings.ToLower(rand.Text())
	pod := apifake.Pod(o.PodName)
	pod.SetOwnerReferences(apifake.ControlledBy("StatefulSet", "worker", "worker"))
	c.api.Put(pod)
	t.Setenv("POD_NAME", o.PodName)
	for range 2 { // one after the other is right
		first, err := idalloc.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := idalloc.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "another process of pod "+o.PodName) {
			t.Errorf("the second one started: %v", err)
		}
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
