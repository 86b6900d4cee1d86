package decide_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/pkg/placement"
)

// busy returns a load for which four pods are needed at first, and two after ten minutes.
func busy(_ int, after time.Duration) float64 {
	if after < 10*minute {
		return 6
	}
	return 2
}

// leaves returns how long after the load has fallen the first partitions leave the pods that are to go. meanwhile is called at each tick.
func leaves(w *world, meanwhile func(since time.Duration)) time.Duration {
	w.t.Helper()
	w.run(10 * minute)
	for first := len(w.history); w.now.Sub(w.start) < 2*hour; {
		meanwhile(w.now.Sub(w.start) - 10*minute)
		w.step()
		if d := w.last(); len(w.history) > first && d.Action != decide.Nothing {
			return w.now.Sub(w.start) - 10*minute
		}
	}
	w.t.Fatal("the pods stay")
	return 0
}

func TestTimeInWhichNobodyLookedDoesNotCount(t *testing.T) {
	at := leaves(newWorld(t, 64, 4, busy), func(time.Duration) {})
	if at < 5*minute || at > 6*minute {
		t.Fatalf("without a break pods go %s after the load has fallen", at)
	}
	for name, c := range map[string]struct {
		each   time.Duration
		missed func(*decide.Decider)
	}{
		"a process that was stopped":         {10 * minute, func(*decide.Decider) {}},
		"an API server that does not answer": {tick, (*decide.Decider).Missed},
		"many short breaks":                  {50 * time.Second, (*decide.Decider).Missed},
	} {
		w, broken := newWorld(t, 64, 4, busy), time.Duration(0)
		at = leaves(w, func(since time.Duration) {
			if since < 2*minute || broken >= 10*minute {
				return
			}
			broken += c.each
			w.now = w.now.Add(c.each)
			c.missed(w.decider)
		})
		if at < 15*minute {
			t.Errorf("%s: pods go %s after the load has fallen, without a look for 10m of that", name, at)
		}
	}
}

// A break that is too short to be one counts as long as a moment stands for, --max-age.
func TestAMomentStandsForMaxAgeAtMost(t *testing.T) {
	const gap = 100 * time.Second
	plain := leaves(newWorld(t, 64, 4, busy), func(time.Duration) {})
	w, broken := newWorld(t, 64, 4, busy), false
	at := leaves(w, func(since time.Duration) {
		if since >= 2*minute && !broken {
			broken = true
			w.now = w.now.Add(gap)
		}
	})
	if later, want := at-plain, gap+tick-minute; later < want || later > want+tick {
		t.Errorf("after a break of %s pods go %s later, want %s", gap, later, want)
	}
}

func TestTheTimeOfAMoveDoesNotCount(t *testing.T) {
	w, began, stuck := newWorld(t, 64, 4, busy), false, time.Duration(0)
	at := leaves(w, func(since time.Duration) {
		if since < 2*minute || stuck >= 10*minute {
			w.stuck = map[int]bool{}
			return
		}
		if !began { // a person moves two partitions by hand, and the pod does not yield them
			began, w.stuck = true, map[int]bool{0: true}
			w.target, w.foreign = swapped(w), ""
		}
		stuck += w.tick
	})
	if at < 14*minute {
		t.Errorf("pods go %s after the load has fallen, and partitions were on their way for 10m of that", at)
	}
}

// swapped gives what id 0 owns to id 1, and the other way around.
func swapped(w *world) placement.Owners {
	target := maps.Clone(w.row)
	target[0], target[1] = w.row[1], w.row[0]
	return target
}

// GitOps with replicas in the manifest sets the number of pods back as often as it looks.
func TestWhoUndoesTheScalingIsNamedAndNotFought(t *testing.T) {
	w := newWorld(t, 64, 2, flat(6))
	w.scaler = "argocd-controller"
	undone := 0
	for range int(hour / tick) {
		w.step()
		w.count = 2
		if d := w.last(); d.Undone != nil {
			undone++
			for _, want := range []string{`field manager "argocd-controller" changed the number of pods from 4`, "to 2", "take replicas out"} {
				if !strings.Contains(d.Why, want) || !d.Warn {
					t.Fatalf("%s; want %q", d.Why, want)
				}
			}
		}
	}
	if w.ups < 2 || w.ups > 20 || undone != w.ups {
		t.Errorf("the number of pods was raised %d times in an hour, and %d times it was noticed that another client undid it", w.ups, undone)
	}
}
