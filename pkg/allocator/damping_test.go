package allocator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/boottime"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

func TestDamperDoublesWhileRestoresDoNotLast(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.UnixMilli(1795219200123))
	var d damper
	if d.note(0, false, clk.Now()); d.wait() != 0 {
		t.Errorf("the first restore waits %s", d.wait())
	}
	want, restores := minDamping, 0
	for range 20 {
		restores++
		if d.note(restores, true, clk.Now()) {
			t.Fatal("a map that stands is undone")
		}
		clk.Step(20 * time.Millisecond)
		if !d.note(restores, false, clk.Now()) {
			t.Fatal("the wait does not begin again")
		}
		if d.note(restores, false, clk.Now()) {
			t.Fatal("one restore is undone twice")
		}
		if d.wait() != want {
			t.Fatalf("after %d restores the wait is %s, want %s", restores, d.wait(), want)
		}
		clk.Step(d.wait())
		want = min(2*want, maxDamping)
	}
	t.Run("and forgets when one lasts", func(t *testing.T) {
		d.note(restores+1, true, clk.Now())
		clk.Step(lasting)
		if d.note(restores+1, false, clk.Now()); d.wait() != 0 {
			t.Errorf("the wait is %s", d.wait())
		}
	})
}

// Of a restore that is undone before this process looks it sees the count alone.
func TestDamperHearsOfRestoresThatItNeverSaw(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.UnixMilli(1795219200123))
	var d damper
	d.note(0, false, clk.Now())
	for i, restores := range []int{1, 2, 7} { // several at once are one
		if !d.note(restores, false, clk.Now()) {
			t.Errorf("restore %d was not heard of", restores)
		}
		if want := minDamping << i; d.wait() != want {
			t.Errorf("after %d the wait is %s, want %s", restores, d.wait(), want)
		}
		clk.Step(time.Second)
	}
}

// The process's own restore counts once, whether the stream tells of it before or after its answer, or never.
func TestDamperCountsItsOwnRestoreOnce(t *testing.T) {
	for name, order := range map[string]func(d *damper, now time.Time){
		"the answer first": func(d *damper, now time.Time) { d.restore(now); d.note(1, true, now); d.note(1, false, now) },
		"the stream first": func(d *damper, now time.Time) { d.restore(now); d.note(1, false, now) },
		"no stream":        func(d *damper, now time.Time) { d.restore(now); d.note(0, false, now) },
	} {
		var d damper
		now := time.UnixMilli(1795219200123)
		d.note(0, false, now)
		order(&d, now.Add(time.Second))
		if d.times != 1 {
			t.Errorf("%s: undone %d times", name, d.times)
		}
	}
}

// A restore may leave the map as it has to be for others, and not for this process. Nobody undoes it.
func TestDamperCountsARestoreThatWasInVain(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.UnixMilli(1795219200123))
	var d damper
	for i, want := 0, minDamping; i < 12; i, want = i+1, min(2*want, maxDamping) {
		d.vain(clk.Now())
		if d.note(i, true, clk.Now()) {
			t.Fatal("somebody undid it")
		}
		if d.wait() != want {
			t.Errorf("after %d restores in vain the wait is %s, want %s", i+1, d.wait(), want)
		}
		clk.Step(d.wait())
	}
}

func TestOnlyAnUntrackedMapIsRestoredInVain(t *testing.T) {
	token := int64(9)
	for name, tc := range map[string]struct {
		alter func(*store.Owner)
		vain  bool
	}{
		"it names the pod":                             {func(*store.Owner) {}, false},
		"clean, and two receipts name the slot":        {func(o *store.Owner) { delete(o.Record.State.Slots, 0) }, false},
		"untracked":                                    {func(o *store.Owner) { o.Trust = assignment.Untracked }, false},
		"untracked, and its epoch is behind the token": {func(o *store.Owner) { o.Trust, o.Record.State.Epoch = assignment.Untracked, token-1 }, true},
	} {
		clk := clocktesting.NewFakeClock(time.UnixMilli(1795219200123))
		a := &Allocator{connection: connection{clock: clk, pace: pace.New(func() float64 { return 0 })}, o: Options{Pod: "a"}}
		a.pod, a.held = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, &held{id: 0, token: token}
		h := &holding{Allocator: a, retry: a.pace.Backoff()}
		owner := both()
		tc.alter(&owner)
		h.damp(owner)
		if vain := h.damping.wait() > 0; vain != tc.vain {
			t.Errorf("%s: the next restore waits %s", name, h.damping.wait())
		}
		if h.damping.stands == tc.vain {
			t.Errorf("%s: the restore counts as one that stands: %t", name, h.damping.stands)
		}
	}
}

// In strict mode a map that is not clean takes ids away: each has restored it by itself while there is time.
func TestDampingLeavesTimeBeforeALeaseEnds(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.UnixMilli(1795219200123))
	boot := boottime.Of(clk)
	for _, random := range []float64{0, 0.5, 0.999} {
		a := &Allocator{connection: connection{clock: clk, pace: pace.New(func() float64 { return random })}, o: Options{FenceAfter: 20 * time.Second}}
		a.strict.boot, a.strict.after = boot, a.o.FenceAfter
		h := &holding{Allocator: a, retry: a.pace.Backoff()}
		view := clean(store.Deployment, 100, 100, store.Rollout{})
		a.damping.times = 20
		if in := h.restoreIn(view); in < maxDamping {
			t.Errorf("without a lease it waits %s", in)
		}
		a.strict.begin(boot.BootTime())
		if in := h.restoreIn(view); in < a.o.FenceAfter/4 || in > a.o.FenceAfter*3/4 {
			t.Errorf("with a lease of %s it waits %s", a.o.FenceAfter, in)
		}
	}
}
