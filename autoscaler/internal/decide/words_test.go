package decide_test

import (
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/pkg/placement"
)

// still is a moment at which each of these sets has a pod of its own.
func still(now time.Time, speeds []float64, sets ...placement.Set) decide.Seen {
	s := decide.Seen{Count: len(sets), Partitions: len(speeds), Row: placement.Owners{}, Loads: decide.Loads{Speeds: speeds, At: now}}
	for id, set := range sets {
		s.Row[id] = set
	}
	return s
}

func TestOnlyAPartitionThatAPodDoesNotWorkOffIsTooLarge(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	with := settings()
	with.Margin = 1
	for speed, oversized := range map[float64]bool{88: false, 94: false, 99: false, 100: true} {
		d := (&decide.Decider{Settings: with}).Decide(still(now, []float64{speed, 20}, placement.Of(0), placement.Of(1)), now)
		if d.Phase != decide.Idle || (len(d.Oversized) > 0) != oversized || d.Warn != oversized {
			t.Errorf("a partition of %g units/s: %s: %v: %s", speed, d.Phase, d.Oversized, d.Why)
		}
	}
}

// A backlog is worked off some time. To split its partition would not help then.
func TestABacklogIsNoReasonToSplitAPartition(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	s := still(now, []float64{180, 20}, placement.Of(0), placement.Of(1))
	s.Loads.Comes = []float64{90, 20}
	d := (&decide.Decider{Settings: settings()}).Decide(s, now)
	if d.Phase != decide.Idle || len(d.Oversized) > 0 || d.Warn || !strings.HasSuffix(d.Why, "; what waits in partition 0 takes one pod longer than --catch-up") {
		t.Errorf("%s: %v: %s", d.Phase, d.Oversized, d.Why)
	}
}

func TestTheBusiestIDIsNamed(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	with := settings()
	with.Min, with.Capacity, with.Margin = 3, 20000, 1 // so the third one stays
	for says, speeds := range map[string][]float64{"id 0, has 12345 of 20000": {12000, 343, 5}, "id 1, has 12346 of 20000": {5, 5, 12345}} {
		w := (&decide.Decider{Settings: with}).Decide(still(now, speeds, placement.Of(0, 1), placement.Of(2), placement.Set{}), now)
		if !strings.Contains(w.Why, "the busiest, "+says) {
			t.Errorf("%s, want %s", w.Why, says)
		}
	}
}

func TestAMoveNamesThreeIDsAndCountsTheOthers(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	s := still(now, make([]float64, 6), placement.Between(0, 5), placement.Set{}, placement.Set{}, placement.Set{}, placement.Set{}, placement.Set{})
	s.Target = placement.Owners{1: placement.Of(1), 2: placement.Of(2), 3: placement.Of(3), 4: placement.Of(4), 5: placement.Of(5)}
	w := (&decide.Decider{Settings: settings()}).Decide(s, now)
	if !strings.HasSuffix(w.Why, "id 2 waits for partition 2 of id 0, id 3 waits for partition 3 of id 0, 2 more ids wait") {
		t.Error(w.Why)
	}
}

// The write was done, and its answer was lost.
func TestAScalingWhoseAnswerWasLostIsNotUndone(t *testing.T) {
	w := newWorld(t, 64, 2, flat(6))
	w.scaler, w.ours = "idalloc-autoscaler", true
	w.run(9 * minute)
	if w.ups != 1 {
		t.Fatalf("scaled up %d times", w.ups)
	}
	w.silent, w.load = true, flat(12)
	for w.ups == 1 {
		w.step()
	}
	w.silent = false
	w.step()
	if d := w.last(); d.Undone != nil || strings.Contains(d.Why, "changed the number of pods") {
		t.Errorf("it accuses itself: %s", d.Why)
	}
	w.scaler, w.ours, w.count = "kubectl", false, w.count+1
	w.step()
	if d := w.last(); d.Undone == nil || d.Undone.By != "kubectl" || d.Undone.From != w.count-1 {
		t.Errorf("who changed it after that is not named: %s", d.Why)
	}
}

// Pods divide among themselves what a pod had that is gone, so an id that owned nothing when fewer pods were asked for may own something.
func TestFewerPodsAreNotWantedThanOwnSomething(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	d := &decide.Decider{Settings: settings()}
	s := still(now, []float64{5, 5}, placement.Of(0, 1), placement.Set{}, placement.Set{}, placement.Set{})
	d.Decide(s, now)
	d.Published(decide.Decision{Wanted: 1})
	s.Row = placement.Owners{1: placement.Of(1), 2: placement.Of(0)} // id 0 is no member any more
	s.Absent = map[int]string{0: "its pod is gone"}
	if w := d.Decide(s, now.Add(tick)); w.Wanted != 3 {
		t.Errorf("%d pods are wanted: %s", w.Wanted, w.Why)
	}
}

func TestWhatNoPodWorksOnIsNamed(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for says, beyond := range map[string][]string{
		"; no pod works on queue orders-P2, for which there is no partition: raise idalloc.dev/partition-count": {"queue orders-P2"},
		"; no pod works on queue orders-P2 and 2 more, for which":                                               {"queue orders-P2", "queue orders-P3", "queue orders-P9"},
	} {
		s := still(now, []float64{1, 1}, placement.Of(0, 1))
		s.Loads.Beyond = beyond
		if w := (&decide.Decider{Settings: settings()}).Decide(s, now); !w.Warn || w.Phase != decide.Idle || !strings.Contains(w.Why, says) {
			t.Errorf("warns: %t, %s: %s", w.Warn, w.Phase, w.Why)
		}
	}
}

// A sum of floats may be above the capacity only because it was rounded.
func TestAPodAtItsCapacityIsNotOverloaded(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for n := 2; n < 65; n++ {
		speeds := make([]float64, n)
		for p := range speeds {
			speeds[p] = 100 / float64(n)
		}
		d := &decide.Decider{Settings: settings()}
		w := decide.Decision{}
		for at := now; at.Before(now.Add(6 * minute)); at = at.Add(tick) {
			w = d.Decide(still(at, speeds, placement.Between(0, n-1), placement.Set{}, placement.Set{}), at)
		}
		if w.Action != decide.Scale || w.Wanted != 1 {
			t.Errorf("%d partitions of %g units/s: %s: %s", n, speeds[0], w.Phase, w.Why)
		}
	}
}
