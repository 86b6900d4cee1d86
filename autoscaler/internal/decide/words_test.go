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
	for speed, oversized := range map[float64]bool{89: false, 95: false, 100: false, 101: true} {
		d := (&decide.Decider{Settings: settings()}).Decide(still(now, []float64{speed, 20}, placement.Of(0), placement.Of(1)), now)
		if d.Phase != decide.Idle || (len(d.Oversized) > 0) != oversized || d.Warn != oversized {
			t.Errorf("a partition of %g units/s: %s: %v: %s", speed, d.Phase, d.Oversized, d.Why)
		}
	}
}

func TestTheBusiestIDIsNamed(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	d := decide.Decider{Settings: settings()}
	d.Settings.Min = 3 // so the third one stays
	if w := d.Decide(still(now, []float64{30, 30, 5}, placement.Of(0, 1), placement.Of(2), placement.Set{}), now); !strings.Contains(w.Why, "the busiest, id 0, has 60 of 100") {
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
