package decide_test

import (
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/pkg/placement"
)

// growing has all partitions grow by this speed, and from ten minutes on by the other one.
func growing(first, then float64) func(int, time.Duration) float64 {
	return func(_ int, after time.Duration) float64 {
		if after > 10*minute {
			return then
		}
		return first
	}
}

// relieved checks that no pod that works has more than it works off.
func (w *world) relieved() {
	w.t.Helper()
	for id := range w.row {
		if sum := w.sum(id); !w.dead[id] && sum > w.decider.Settings.Capacity {
			w.t.Errorf("id %d has %.0f units/s: %s", id, sum, w.last().Why)
		}
	}
}

func TestNoLoadMovesToAnIDWhosePodDoesNotAnswer(t *testing.T) {
	w := newWorld(t, 64, 4, growing(5, 7)) // 320, then 448
	w.run(9 * minute)
	w.dead = map[int]bool{2: true} // it owns a quarter
	w.run(hour)                    // the world checks each target
	w.relieved()
	if w.count < 5 || w.count > 6 {
		t.Errorf("%d pods", w.count)
	}
	if why := w.last().Why; !w.last().Warn || !strings.Contains(why, "id 2 of") || !strings.Contains(why, "its pod is not Ready") {
		t.Errorf("it does not say which id is missing, and why: %s", why)
	}
	clear(w.dead)
	w.run(hour)
	w.settled(5, 6)
	if strings.Contains(w.last().Why, "id 2 of") {
		t.Errorf("id 2 is back: %s", w.last().Why)
	}
}

func TestALoadDoesNotFitIntoAPodThatDoesNotAnswer(t *testing.T) {
	w := newWorld(t, 16, 3, flat(5)) // 80 units/s, so one pod would do
	w.dead = map[int]bool{0: true}
	w.run(hour)
	if w.row[0].Len() > 6 {
		t.Errorf("id 0 got partitions: %s", w.row[0])
	}
	if w.count != 2 {
		t.Errorf("%d pods, of which one answers: %s", w.count, w.last().Why)
	}
}

func TestAnIDThatNeverComesDoesNotStopTheOthers(t *testing.T) {
	w := newWorld(t, 64, 4, growing(4, 9)) // 256, then 576
	w.lost = map[int]bool{1: true}
	delete(w.row, 1)
	w.run(9 * minute)
	if w.last().Phase != decide.Idle || !strings.Contains(w.last().Why, "id 1 of 4 has not taken part for 8m50s: its pod has not begun to work on partitions") {
		t.Errorf("%s: %s", w.last().Phase, w.last().Why)
	}
	w.run(hour)
	w.relieved()
	if w.count < 7 || w.count > 8 { // six or seven work, and one does not
		t.Errorf("%d pods: %s", w.count, w.last().Why)
	}
	w.load = flat(3) // 192
	w.run(hour)
	w.relieved()
	if w.count != 4 || w.scalings() > 5 {
		t.Errorf("%d pods after %d scalings: %s", w.count, w.scalings(), w.last().Why)
	}
}

func TestAsManyPodsAsFindNoRoomAreNotAskedForAgain(t *testing.T) {
	w := newWorld(t, 64, 2, growing(3, 12)) // 192, then 768
	w.full = 5
	w.run(2 * hour)
	if w.count > 10 || w.ups > 1 {
		t.Errorf("%d pods after %d times up, and 5 find room: %s", w.count, w.ups, w.last().Why)
	}
	for id := range 5 {
		if sum := w.sum(id); sum > 170 {
			t.Errorf("id %d has %.0f units/s, and the mean is 154", id, sum)
		}
	}
}

func TestAPodThatCrashesAgainAndAgainIsLeftOut(t *testing.T) {
	w := newWorld(t, 64, 4, growing(4, 6)) // 256, then 384
	w.run(5 * minute)
	for range 120 { // each minute it is there for 20 s
		w.dead = map[int]bool{1: true}
		w.run(40 * time.Second)
		w.dead = nil
		w.run(20 * time.Second)
	}
	w.relieved()
	if w.scalings() > 3 || w.targets > 5 {
		t.Errorf("%d scalings and %d targets in two hours", w.scalings(), w.targets)
	}
	w.run(hour)
	w.settled(4, 5)
}

func TestATargetOfSomebodyElseIsNotFollowed(t *testing.T) {
	w := newWorld(t, 64, 2, flat(2.5))
	w.run(10 * minute)
	stood := w.aim()
	w.target, w.foreign = placement.Owners{0: placement.Between(0, 63)}, `field manager "kubectl-rollout"`
	w.step()
	if d := w.last(); d.Reason != decide.Restore || !strings.Contains(d.Why, `the target was changed by field manager "kubectl-rollout"`) {
		t.Fatalf("%s %s: %s", d.Action, d.Reason, d.Why)
	}
	w.run(10 * minute)
	w.settled(2, 2)
	if !stood.Equal(w.row) {
		t.Errorf("%s, and it was %s", w.row, stood)
	}
}

func TestPodsWhoseReadinessFailsUnderLoadAreRelieved(t *testing.T) {
	for name, load := range map[string]func(int, time.Duration) float64{
		"all": growing(5, 12), // 320, then 768
		"one of two": func(p int, after time.Duration) float64 {
			return growing(2, map[bool]float64{true: 5, false: 2}[p < 32])(p, after)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 64, 2, load)
			w.fragile = true
			w.run(30 * minute)
			w.relieved()
			w.settled(3, 9)
			if w.overloaded > 6*minute || w.ups > 2 || w.downs > 0 {
				t.Errorf("overloaded for %s; %d ups and %d downs", w.overloaded, w.ups, w.downs)
			}
		})
	}
}

func TestNoPodsAreAskedForAboveTheMaximumWhereNoneIsReady(t *testing.T) {
	w := newWorld(t, 64, 2, growing(3, 12))
	w.fragile = true
	w.decider.Settings.Max = 2
	w.run(hour) // the world checks the bound
	if w.scalings() > 0 || !w.last().Stuck || !strings.Contains(w.last().Why, "its pod is not Ready") {
		t.Errorf("%d scalings: %s", w.scalings(), w.last().Why)
	}
}

func TestPodsThatFindNoRoomAreNotAskedForAgainWhereNoneIsReady(t *testing.T) {
	w := newWorld(t, 64, 2, growing(3, 12))
	w.fragile, w.full = true, 2
	w.run(hour)
	if w.ups > 1 || w.count > 12 {
		t.Errorf("%d pods after %d ups", w.count, w.ups)
	}
}

// A new decider does not know who has crashed before.
func TestAfterARestartAPodThatCrashesAgainAndAgainGetsNothing(t *testing.T) {
	for name, there := range map[string]bool{"that is there at that moment": true, "that is away at that moment": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 64, 4, nil)
			first := w.row[0]
			w.load = func(p int, after time.Duration) float64 {
				if first.Contains(p) {
					return growing(4, 8)(p, after) // 64, then 128
				}
				return growing(4, 2)(p, after)
			}
			w.run(9 * minute)
			had := w.row[1]
			for range 10 { // it is there for 20 s at a time
				w.decider = &decide.Decider{Settings: settings()}
				if there {
					w.run(20 * time.Second)
				}
				w.dead = map[int]bool{1: true}
				w.run(50 * time.Second)
				w.dead = nil
				if !there {
					w.run(20 * time.Second)
				}
			}
			if !w.row[1].Minus(had).Empty() {
				t.Errorf("id 1 had %s and got %s", had, w.row[1])
			}
		})
	}
}
