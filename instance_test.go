package idalloc_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/watch"
	"github.com/idalloc/idalloc/test/apifake"
)

var errBoom = errors.New("boom")

func clusterOf(t *testing.T) *cluster {
	t.Helper()
	c := newCluster()
	t.Cleanup(c.close)
	return c
}

// holding starts an instance, and waits for its id.
func holding(t *testing.T, start func(context.Context, idalloc.Options) (*idalloc.Instance, error), o idalloc.Options) *idalloc.Instance {
	t.Helper()
	i, err := start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

// closes releases what an instance holds.
func closes(t *testing.T, i *idalloc.Instance) {
	t.Helper()
	if err := i.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	c := clusterOf(t)
	c.api.Put(apifake.Pod("lonely"))
	pod := apifake.Pod("assigned")
	pod.SetLabels(map[string]string{receipt.AssignLabel: receipt.ByController})
	c.api.Put(pod)
	t.Setenv("POD_NAME", "")
	nameless, lonely, assigned := c.options(), c.options(), c.options()
	nameless.PodName, lonely.PodName, assigned.PodName = "", "lonely", "assigned"
	ended, end := context.WithCancel(t.Context())
	end()
	for name, tc := range map[string]struct {
		options idalloc.Options
		says    string
		is      error
	}{
		"a pod without a name":                  {options: nameless, says: "set POD_NAME"},
		"a pod that stands alone":               {options: lonely, is: watch.ErrNoController},
		"a pod that the controller gives an id": {options: assigned, says: "remove label idalloc.dev/assign from the pod template, or idalloc from pod assigned", is: allocator.ErrAssigned},
	} {
		i, err := idalloc.Start(t.Context(), tc.options)
		if err == nil || i != nil || (tc.is != nil && !errors.Is(err, tc.is)) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: Start returns %v, %v", name, i, err)
		}
		work := func(context.Context, idalloc.Identity) error { t.Errorf("%s: the work has begun", name); return nil }
		if err := idalloc.Run(t.Context(), tc.options, work); err == nil || (tc.is != nil && !errors.Is(err, tc.is)) {
			t.Errorf("%s: Run returns %v", name, err)
		}
		if err := idalloc.Run(ended, tc.options, work); err != nil {
			t.Errorf("%s: Run returns %v although its context has ended", name, err)
		}
	}
}

func TestWaitSaysWhatItWaitedFor(t *testing.T) {
	c := clusterOf(t)
	c.scale(0)
	i, err := idalloc.Start(t.Context(), c.options())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	id, err := i.Wait(ctx)
	if id.Assigned() || !errors.Is(err, allocator.ErrNoSlot) || !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "waited for ") {
		t.Errorf("%v, %v", id, err)
	}
	if err := i.Healthy(); err != nil {
		t.Errorf("while it waits: %v", err)
	}
	closes(t, i)
}

func TestAnInstanceThatIsClosed(t *testing.T) {
	c := clusterOf(t)
	i, err := idalloc.Start(t.Context(), c.options())
	if err != nil {
		t.Fatal(err)
	}
	if id, err := i.Wait(t.Context()); err != nil || id.ID != 0 {
		t.Fatal(id, err)
	}
	if err := i.Healthy(); err != nil {
		t.Error(err)
	}
	if c.receiptText(worker0) == "" {
		t.Error("it has an id, and the pod no receipt")
	}
	for range 2 {
		closes(t, i)
		if _, err := i.Wait(t.Context()); !errors.Is(err, idalloc.ErrClosed) {
			t.Errorf("Wait returns %v", err)
		}
		if err := i.Healthy(); !errors.Is(err, idalloc.ErrClosed) {
			t.Errorf("Healthy returns %v", err)
		}
		for range i.Changes() { // ends, whatever is left in it
		}
		if i.Current().Assigned() {
			t.Errorf("it is %v", i.Current())
		}
	}
	checkReleased(t, c, 0)
}

// checkReleased checks that the pod has given its slot back, and said how often its program ended by itself.
func checkReleased(t *testing.T, c *cluster, failed int) {
	t.Helper()
	if slots := c.slots(); slots != "{}" {
		t.Errorf("the map is %s", slots)
	}
	checkUnlocked(t, c, failed)
}

// checkUnlocked is checkReleased where the slot is at or above the count. Then its entry in the map goes with the next write of any pod.
func checkUnlocked(t *testing.T, c *cluster, failed int) {
	t.Helper()
	if r := c.receiptOf(worker0); r.State == receipt.Locks || r.Failures() != failed {
		t.Errorf("the receipt is %s, want one that locks nothing and counts %d failures", c.receiptText(worker0), failed)
	}
}

// A program that ended by itself says so, and its pod makes way for others.
func TestWorkThatFailedIsCounted(t *testing.T) {
	c := clusterOf(t)
	i := holding(t, idalloc.Start, c.options())
	i.Failed()
	closes(t, i)
	checkReleased(t, c, 1)
}

// The first call of Close says that the slot stays, and so does each later one.
func TestAReleaseThatFails(t *testing.T) {
	c := clusterOf(t)
	i := holding(t, idalloc.Start, c.options())
	ctx, cancel := context.WithCancelCause(t.Context())
	c.refuse(func() { cancel(errBoom) })
	first := i.Close(ctx)
	if first == nil {
		t.Fatal("the slot was not released, and Close returned no error")
	}
	if again := i.Close(t.Context()); again == nil || again.Error() != first.Error() {
		t.Errorf("the second Close returned %v, the first %v", again, first)
	}
}

func TestRunReturnsWhatTheWorkReturned(t *testing.T) {
	for name, tc := range map[string]struct {
		stop bool
		work func(context.Context) error
		want error
	}{
		"an error":                                   {work: func(context.Context) error { return errBoom }, want: errBoom},
		"nothing":                                    {work: func(context.Context) error { return nil }},
		"an error after it was told to stop":         {stop: true, work: func(ctx context.Context) error { <-ctx.Done(); return errBoom }, want: errBoom},
		"its context's error after it was told":      {stop: true, work: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		"its context's cause after it was told":      {stop: true, work: func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }},
		"its context's error without any such thing": {work: func(context.Context) error { return context.Canceled }, want: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(t)
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			calls := 0
			err := idalloc.Run(ctx, c.options(), func(ctx context.Context, _ idalloc.Identity) error {
				calls++
				if tc.stop {
					stop(errors.New("enough"))
				}
				return tc.work(ctx)
			})
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) || calls != 1 {
				t.Errorf("after %d calls Run returned %v, want %v", calls, err, tc.want)
			}
			failed := 1 // the work ended soon, and by itself
			if tc.stop {
				failed = 0
			}
			checkReleased(t, c, failed)
		})
	}
}

// What the work returns because its id changed is no error, and its own error ends Run even then.
func TestRunContinuesAfterAChange(t *testing.T) {
	for name, want := range map[string]error{"": nil, "the work fails": errBoom} {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(t)
			var counts []int
			err := idalloc.Run(t.Context(), c.options(), func(ctx context.Context, id idalloc.Identity) error {
				if counts = append(counts, id.Count); id.Count == 5 {
					return nil
				}
				c.scale(5)
				<-ctx.Done()
				if want != nil {
					return want
				}
				return context.Cause(ctx)
			})
			if !errors.Is(err, want) || (err == nil) != (want == nil) || counts[0] != 3 || (len(counts) == 1) != (want != nil) {
				t.Errorf("%v after calls with the counts %v", err, counts)
			}
		})
	}
}

func TestRunEndsWhileItWaits(t *testing.T) {
	c := clusterOf(t)
	c.scale(0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := idalloc.Run(ctx, c.options(), func(context.Context, idalloc.Identity) error { t.Error("there is no id"); return nil })
	if err != nil {
		t.Error(err)
	}
}
