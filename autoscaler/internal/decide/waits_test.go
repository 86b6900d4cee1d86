package decide_test

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
)

// next returns how long after the last scaling the next one comes.
func (w *world) next() time.Duration {
	w.t.Helper()
	for last, n := w.scaled, w.scalings(); w.now.Sub(last) < hour; {
		if w.step(); w.scalings() > n {
			return w.now.Sub(last)
		}
	}
	w.t.Fatalf("nothing is scaled: %s", w.last().Why)
	return 0
}

// risen is a workload whose number of pods has just risen, and fallen one whose has just fallen.
func risen(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 64, 2, growing(3, 6))
	for w.ups == 0 {
		w.step()
	}
	return w
}

func fallen(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 64, 4, growing(6, 3))
	for w.downs == 0 {
		w.step()
	}
	return w
}

func TestUpWaitsForAfterUpAndDownForAfterDownWhicheverWayTheLastScalingWent(t *testing.T) {
	for name, c := range map[string]struct {
		world       func(*testing.T) *world
		then        float64
		least, most time.Duration
	}{
		"up after up":     {risen, 12, 3 * minute, 3*minute + tick},
		"up after down":   {fallen, 12, 3 * minute, 3*minute + tick},
		"down after up":   {risen, 1, 5 * minute, 8 * minute}, // moves do not count
		"down after down": {fallen, 1, 5 * minute, 8 * minute},
	} {
		w := c.world(t)
		w.load = flat(c.then)
		if wait := w.next(); wait < c.least || wait > c.most {
			t.Errorf("%s comes after %s, want %s: %s", name, wait, c.least, w.last().Why)
		}
	}
}

// The number of pods is out of its bounds at once, so nothing has to be judged for a time.
func TestPodsAboveTheMaximumGoAfterDown(t *testing.T) {
	w := risen(t)
	w.run(30 * time.Second)
	w.load, w.decider.Settings.Max = flat(3), 2
	if wait := w.next(); wait < 5*minute || wait > 5*minute+2*tick || w.downs != 1 {
		t.Errorf("pods went after %s", wait)
	}
}

// The object says when it was scaled.
func TestANewLeaderWaitsAsTheFormerOneWouldHave(t *testing.T) {
	for name, w := range map[string]*world{"up after up": risen(t), "up after down": fallen(t)} {
		w.run(20 * time.Second)
		w.load, w.decider = flat(12), &decide.Decider{Settings: settings()}
		if wait := w.next(); wait < 3*minute || wait > 3*minute+tick {
			t.Errorf("%s comes after %s by a new leader: %s", name, wait, w.last().Why)
		}
	}
}

func TestAProcessThatWasStoppedKnowsWhenItScaled(t *testing.T) {
	for name, w := range map[string]*world{"up after up": risen(t), "up after down": fallen(t)} {
		w.now = w.now.Add(130 * time.Second) // longer than twice --max-age
		w.load = flat(12)
		if wait := w.next(); wait < 3*minute || wait > 3*minute+2*tick {
			t.Errorf("%s comes after %s: %s", name, wait, w.last().Why)
		}
	}
}

func TestATimeOfTheObjectThatIsYetToComeIsNow(t *testing.T) {
	w := risen(t)
	begin := w.now
	w.scaled = w.now.Add(hour) // the clocks differ
	w.load, w.decider = flat(12), &decide.Decider{Settings: settings()}
	ups := w.ups
	for w.ups == ups && w.now.Sub(begin) < hour {
		w.step()
	}
	if wait := w.now.Sub(begin); wait > 3*minute+2*tick {
		t.Errorf("up comes after %s: %s", wait, w.last().Why)
	}
}
