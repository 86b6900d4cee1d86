package decide_test

import (
	"math"
	"testing"
	"time"
)

// daily swings between a quarter of its peak at night and the peak at noon.
func daily(peak float64, partitions int) func(int, time.Duration) float64 {
	return func(_ int, after time.Duration) float64 {
		day := 2 * math.Pi * after.Hours() / 24
		return peak / float64(partitions) * (0.625 - 0.375*math.Cos(day))
	}
}

func TestADailyCurve(t *testing.T) {
	w := newWorld(t, 40, 3, daily(1000, 40))
	w.tick = 30 * time.Second
	w.run(24 * hour)
	t.Logf("%d up, %d down, %d targets; overloaded for %s; %.0f pod-hours", w.ups, w.downs, w.targets, w.overloaded, w.pods.Hours())
	if w.scalings() > 2*8 {
		t.Errorf("%d scalings in a day, more than 8 for each way up and down", w.scalings())
	}
	if share := w.overloaded.Hours() / 24; share > 0.02 {
		t.Errorf("a pod was overloaded for %.1f%% of the time", 100*share)
	}
	// The load of the day is 1000 * 0.625 * 24 / 100 = 150 pod-hours.
	if hours := w.pods.Hours(); hours > 195 {
		t.Errorf("%.0f pod-hours for a load of 150", hours)
	}
	w.settled(3, 3) // as it began, so the next day is as this one
}

func TestALoadAroundABoundaryDoesNotFlap(t *testing.T) {
	const boundary = 400.0 // four pods
	for name, swing := range map[string]func(w *world, after time.Duration) float64{
		"noise":                nil,
		"a wave of 1 minute":   wave(minute),
		"a wave of 4 minutes":  wave(4 * minute),
		"a wave of 10 minutes": wave(10 * minute),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 64, 4, nil)
			w.load = func(_ int, after time.Duration) float64 {
				if swing == nil {
					return boundary / 64 * (0.9 + 0.2*w.random.Float64())
				}
				return boundary / 64 * swing(w, after)
			}
			w.run(hour)
			t.Logf("%d up, %d down, %d targets", w.ups, w.downs, w.targets)
			if w.scalings() > 2 {
				t.Errorf("%d scale decisions in an hour", w.scalings())
			}
		})
	}
}

func wave(period time.Duration) func(*world, time.Duration) float64 {
	return func(_ *world, after time.Duration) float64 {
		return 1 + 0.1*math.Sin(2*math.Pi*after.Seconds()/period.Seconds())
	}
}

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
