package decide_test

import (
	"testing"
	"time"
)

// A division that is better for a moment is not worth a move. Where there is no room for all, each noise would bring one.
func TestNoiseAtTheMaximumMovesNothing(t *testing.T) {
	w := newWorld(t, 16, 4, nil)
	w.load = func(int, time.Duration) float64 { return 40 * (0.9 + 0.2*w.random.Float64()) } // 640 for 4 pods of 100
	w.decider.Settings.Max = 4
	w.run(24 * hour)
	if w.targets > 1 {
		t.Errorf("%d targets in a day", w.targets)
	}
}
