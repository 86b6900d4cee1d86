package decide_test

import (
	"math"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
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

func TestAFlashCrowd(t *testing.T) {
	w := newWorld(t, 64, 2, func(_ int, after time.Duration) float64 {
		if after > hour && after < 2*hour {
			return 12
		}
		return 3
	})
	w.run(hour + 10*minute)
	if w.count < 8 {
		t.Errorf("%d pods 10 minutes into a load of 768", w.count)
	}
	w.run(50 * minute)
	if w.ups > 2 || w.overloaded > 2*minute {
		t.Errorf("%d ups, overloaded for %s", w.ups, w.overloaded)
	}
	w.run(hour)
	t.Logf("%d up, %d down, %d targets; overloaded for %s", w.ups, w.downs, w.targets, w.overloaded)
	if w.count > 3 || w.scalings() > 5 {
		t.Errorf("%d pods an hour after the crowd, %d scalings", w.count, w.scalings())
	}
}

// The first measurements see only a part of it, and more pods have to wait for as long as --after-up says.
func TestALoadThatGoesOnRisingIsSharedByThePodsThatAreThere(t *testing.T) {
	w := newWorld(t, 64, 2, func(_ int, after time.Duration) float64 {
		switch {
		case after < 10*minute:
			return 3
		case after < 10*minute+20*time.Second:
			return 6
		}
		return 12
	})
	w.run(12 * minute)
	if w.ups != 1 || w.count < 4 || w.count > 5 {
		t.Fatalf("%d pods after %d times up: %s", w.count, w.ups, w.last().Why)
	}
	for id := range w.count {
		if sum, mean := w.sum(id), 64*12/float64(w.count); sum > 1.25*mean {
			t.Errorf("id %d has %.0f units/s, and the mean is %.0f: %s", id, sum, mean, w.last().Why)
		}
	}
	w.run(8 * minute)
	w.settled(8, 9)
}

func TestOneHotPartition(t *testing.T) {
	w := newWorld(t, 16, 2, func(p int, after time.Duration) float64 {
		if p == 5 && after > 10*minute {
			return 150
		}
		return 5
	})
	w.run(2 * hour)
	for id, set := range w.row {
		if set.Contains(5) && set.Len() > 1 {
			t.Errorf("id %d has the hot partition and others: %s", id, set)
		}
	}
	t.Logf("%d up, %d down, %d targets", w.ups, w.downs, w.targets)
	last := w.history[len(w.history)-1]
	if len(last.Oversized) != 1 || last.Oversized[0] != 5 || !last.Warn {
		t.Errorf("nothing says that partition 5 is too large: %+v", last)
	}
	if w.scalings() > 2 {
		t.Errorf("%d scalings", w.scalings())
	}
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

func TestAPodThatNeverYields(t *testing.T) {
	w := newWorld(t, 16, 2, func(_ int, after time.Duration) float64 {
		if after > 10*minute {
			return 20
		}
		return 10
	})
	w.stuck[1] = true
	w.run(2 * hour)
	last := w.history[len(w.history)-1]
	if last.Phase != decide.Moving || !last.Stuck || !last.Warn {
		t.Errorf("it does not say that the move is stuck: %+v", last)
	}
	if w.scalings() > 1 || w.targets > 1 {
		t.Errorf("%d scalings and %d targets beside a move that does not end", w.scalings(), w.targets)
	}
	delete(w.stuck, 1)
	w.run(10 * minute)
	if last := w.history[len(w.history)-1]; last.Phase != decide.Idle {
		t.Errorf("it does not go on: %s", last.Why)
	}
}

func TestWithoutDataNothingIsDecided(t *testing.T) {
	w := newWorld(t, 16, 4, flat(20))
	w.run(10 * minute)
	before := w.scalings()
	w.dark = true
	w.run(hour)
	w.load = flat(1)
	last := w.history[len(w.history)-1]
	if last.Phase != decide.Blind || !last.Warn || w.scalings() != before {
		t.Errorf("decided without data: %+v", last)
	}
	w.dark = false
	w.run(4 * minute)
	if w.scalings() != before {
		t.Error("it scaled down on data of less than --after-down")
	}
	w.run(10 * minute)
	if w.count != 1 {
		t.Errorf("%d pods for a load of 16", w.count)
	}
}
