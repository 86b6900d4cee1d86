package decide_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/pkg/placement"
)

// last returns the last decision.
func (w *world) last() decide.Decision { return w.history[len(w.history)-1] }

// settled checks that the load has the pods it needs, and that nothing is under way.
func (w *world) settled(least, most int) {
	w.t.Helper()
	if w.last().Phase != decide.Idle || w.count < least || w.count > most {
		w.t.Errorf("%d pods, want %d to %d, at rest: %s: %s", w.count, least, most, w.last().Phase, w.last().Why)
	}
}

func TestAHandOnKubectlScaleIsCorrected(t *testing.T) {
	w := newWorld(t, 64, 4, flat(6)) // 384
	w.run(20 * minute)
	w.settled(4, 5)
	for name, count := range map[string]int{"down": 2, "up": 9} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			for id := count; id < w.count; id++ {
				delete(w.row, id)
			}
			w.count = count
			first := len(w.history)
			w.run(3 * minute)
			for _, d := range w.history[first:] {
				if d.Action == decide.Scale {
					t.Errorf("scaled within 3 minutes of the client that scaled %s: %s", name, d.Why)
				}
			}
			w.run(20 * minute)
			w.settled(4, 5)
		})
	}
}

func TestARestartGoesOnFromWhatStands(t *testing.T) {
	load := func(_ int, after time.Duration) float64 {
		if after > 10*minute && after < 40*minute {
			return 12
		}
		return 3
	}
	for at := range 12 { // one restart at each minute of the busiest times
		for _, from := range []time.Duration{10 * minute, 40 * minute} {
			w := newWorld(t, 64, 2, load)
			w.run(from + time.Duration(at)*minute)
			w.decider = &decide.Decider{Settings: settings()}
			w.run(90*minute - w.now.Sub(w.start))
			w.settled(2, 3)
			if w.scalings() > 6 {
				t.Errorf("%d scalings with a restart %s after %s", w.scalings(), time.Duration(at)*minute, from)
			}
		}
	}
}

// The world fails if a target is written while a partition is not where the last one has it.
func TestALeaderThatIsLostInTheMiddleOfAMoveIsFollowedByOneThatWaitsForIt(t *testing.T) {
	w := newWorld(t, 64, 2, growing(3, 12)) // 192, then 768
	lost := 0
	for range int(hour / tick) {
		before := w.targets
		w.step()
		if w.targets == before {
			continue
		}
		lost++
		w.decider = &decide.Decider{Settings: settings()}
		w.step()
		if w.last().Phase != decide.Moving {
			t.Errorf("a move is under way, and the next leader is %s: %s", w.last().Phase, w.last().Why)
		}
	}
	w.settled(8, 9)
	if lost == 0 || w.scalings() > 2 {
		t.Errorf("%d leaders were lost; %d scalings", lost, w.scalings())
	}
}

func TestASecondAutoscaler(t *testing.T) {
	w := newWorld(t, 64, 2, flat(6))
	first, second := w.decider, &decide.Decider{Settings: settings()}
	for i := range int(hour / tick) {
		w.decider = first
		if i%2 == 1 {
			w.decider = second
		}
		w.step()
	}
	w.settled(4, 5)
	if w.scalings() > 2 {
		t.Errorf("%d scalings by two that both decide", w.scalings())
	}
}

func TestPodsThatDoNotComeLeaveTheOthersBalanced(t *testing.T) {
	w := newWorld(t, 64, 2, func(p int, after time.Duration) float64 {
		if after > 5*minute && p < 16 {
			return 12
		}
		return 2
	})
	w.full = 2 // there is no room for a third pod
	w.run(hour)
	if w.count > 3 {
		t.Errorf("%d pods are asked for, and 2 find room", w.count)
	}
	if a, b := w.sum(0), w.sum(1); max(a, b) > 1.1*min(a, b) {
		t.Errorf("the two that run have %.0f and %.0f units/s", a, b)
	}
}

func (w *world) sum(id int) float64 {
	sum := 0.0
	for p := range w.row[id].All() {
		sum += w.speeds[p]
	}
	return sum
}

func TestNoTargetNamesAnIDThatNobodyHas(t *testing.T) {
	w := newWorld(t, 64, 4, flat(4)) // 256: three pods would do
	w.lost = map[int]bool{1: true}
	delete(w.row, 1)
	w.run(hour) // the world checks each target
	if w.count != 4 {
		t.Errorf("%d pods", w.count)
	}
	w.lost = nil
	w.run(hour)
	w.settled(3, 3)
}

func TestAtTheMaximumItBalances(t *testing.T) {
	w := newWorld(t, 64, 4, func(p int, after time.Duration) float64 {
		if after > 5*minute && p < 32 {
			return 12
		}
		return 2 + float64(p)/100
	})
	w.decider.Settings.Max = 4
	w.run(hour)
	for id := range 4 {
		if sum := w.sum(id); sum > 125 {
			t.Errorf("id %d has %.0f units/s, and the mean is 114", id, sum)
		}
	}
	if w.scalings() > 0 || w.targets > 4 {
		t.Errorf("%d scalings, %d targets", w.scalings(), w.targets)
	}
	if !strings.Contains(w.last().Why, "--max-replicas is 4") {
		t.Errorf("it does not say what is in the way: %s", w.last().Why)
	}
}

func TestTheBoundsAreKept(t *testing.T) {
	w := newWorld(t, 64, 9, flat(1))
	w.decider.Settings.Min, w.decider.Settings.Max = 3, 6
	w.run(30 * minute)
	w.settled(3, 3)
	w.count = 1
	delete(w.row, 1)
	delete(w.row, 2)
	w.run(20 * minute)
	w.settled(3, 3)
}

func TestWhenSomebodyElseScalesTheNumberStandsAndTheLoadIsBalanced(t *testing.T) {
	w := newWorld(t, 64, 3, func(p int, after time.Duration) float64 {
		if after > 5*minute && p%3 == 0 { // all of id 0
			return 12
		}
		return 3
	})
	w.frozen = true
	w.run(hour)
	if w.last().Wanted < 4 || w.last().Action != decide.Scale {
		t.Errorf("%d pods are wanted: %s", w.last().Wanted, w.last().Why)
	}
	if w.targets == 0 {
		t.Error("the load was never balanced")
	}
}

func TestZeroPodsStayZero(t *testing.T) {
	w := newWorld(t, 8, 0, flat(50))
	w.run(10 * minute)
	if w.count != 0 || !strings.Contains(w.last().Why, "scaled to zero") {
		t.Errorf("%d pods: %s", w.count, w.last().Why)
	}
}

func TestATargetThatCouldNotBeWrittenIsDecidedAgainAtOnce(t *testing.T) {
	w := newWorld(t, 8, 2, flat(10))
	w.run(minute)
	w.row = placement.Owners{0: placement.Between(0, 5), 1: placement.Between(6, 7)}
	w.speeds = []float64{30, 30, 30, 30, 0, 0, 0, 0}
	first := w.decider.Decide(w.seen(), w.now)
	again := w.decider.Decide(w.seen(), w.now.Add(tick)) // the write of the first has failed
	if first.Action != decide.Assign || again.Action != decide.Assign {
		t.Fatalf("%s: %s; then %s: %s", first.Action, first.Why, again.Action, again.Why)
	}
	w.decider.Wrote(again, w.now.Add(tick))
	if third := w.decider.Decide(w.seen(), w.now.Add(2*tick)); third.Phase != decide.Waiting {
		t.Errorf("%s within --every of a target: %s", third.Action, third.Why)
	}
}

func TestTroubleAndGapsAreSaid(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	row := placement.Owners{0: placement.Between(0, 3)}
	good := decide.Seen{Count: 1, Partitions: 4, Row: row, Loads: decide.Loads{Speeds: make([]float64, 4), At: now}}
	for want, change := range map[string]func(*decide.Seen){
		"the owner is being deleted":                             func(s *decide.Seen) { s.Trouble = "the owner is being deleted" },
		"no load is known of partition 2:":                       func(s *decide.Seen) { s.Loads.Missing = placement.Of(2) },
		"no usable reading for 2m0s, longer than --max-age 1m0s": func(s *decide.Seen) { s.Loads.At = now.Add(-2 * minute) },
		"says nothing of partition 1 any more, for 2m0s": func(s *decide.Seen) {
			s.Loads.At, s.Loads.Silent = now.Add(-2*minute), placement.Of(1)
		},
		"says nothing of partitions 1,3 any more, and of one of them for 2m0s": func(s *decide.Seen) {
			s.Loads.At, s.Loads.Silent = now.Add(-2*minute), placement.Of(1, 3)
		},
		"id 0 waits for partition 3 of id 1": func(s *decide.Seen) {
			s.Row = placement.Owners{0: placement.Between(0, 2), 1: placement.Of(3)}
		},
		"known of 3 partitions":         func(s *decide.Seen) { s.Loads.Speeds = make([]float64, 3) },
		"no partitions yet":             func(s *decide.Seen) { s.Partitions = 0 },
		"id 0 waits for partitions 0-3": func(s *decide.Seen) { s.Row = placement.Owners{0: {}} },
		"no id is a member yet":         func(s *decide.Seen) { s.Row = nil },
		"id 1 of 2 has not taken part":  func(s *decide.Seen) { s.Count = 2 },
	} {
		s := good
		change(&s)
		d := (&decide.Decider{Settings: settings()}).Decide(s, now)
		if d.Action != decide.Nothing || !strings.Contains(d.Why, want) {
			t.Errorf("%s: %s; want %q", d.Action, d.Why, want)
		}
	}
	if d := (&decide.Decider{Settings: settings()}).Decide(good, now); d.Phase != decide.Idle {
		t.Errorf("%s: %s", d.Phase, d.Why)
	}
}

// TestAnyHistoryEndsAtRest plays random loads, crashes and hands. The world checks each decision; in the end, with a load that stays, all
// comes to rest with no pod that has more than it works off.
func TestAnyHistoryEndsAtRest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		partitions := rapid.IntRange(1, 24).Draw(r, "partitions")
		speeds := rapid.SliceOfN(rapid.Float64Range(0, 60), partitions, partitions)
		now := speeds.Draw(r, "speeds")
		w := newWorld(t, partitions, rapid.IntRange(1, 6).Draw(r, "pods"), func(p int, _ time.Duration) float64 { return now[p] })
		w.random = rand.New(rand.NewPCG(3, 4)) //nolint:gosec // not for secrets
		for range rapid.IntRange(0, 8).Draw(r, "events") {
			switch rapid.SampledFrom([]string{"load", "restart", "scale", "stuck", "free", "dark", "light"}).Draw(r, "event") {
			case "load":
				now = speeds.Draw(r, "speeds")
			case "restart":
				w.decider = &decide.Decider{Settings: settings()}
			case "scale":
				w.count = rapid.IntRange(1, 8).Draw(r, "count")
				for _, id := range w.row.IDs() {
					if id >= w.count {
						delete(w.row, id)
					}
				}
			case "stuck":
				w.stuck[rapid.IntRange(0, 3).Draw(r, "id")] = true
			case "free":
				clear(w.stuck)
			case "dark":
				w.dark = true
			case "light":
				w.dark = false
			}
			w.run(time.Duration(rapid.IntRange(1, 60).Draw(r, "ticks")) * tick)
		}
		w.dark = false
		clear(w.stuck)
		w.run(hour)
		if w.last().Phase != decide.Idle {
			r.Fatalf("%s: %s\n%s", w.last().Phase, w.last().Why, fmt.Sprint(w.row))
		}
		for id := range w.row {
			if sum := w.sum(id); sum > w.decider.Settings.Capacity+1e-9 {
				r.Errorf("id %d has %g of %g units/s", id, sum, w.decider.Settings.Capacity)
			}
		}
	})
}
