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

func TestARestartContinuesFromWhatStands(t *testing.T) {
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
	w := newWorld(t, 64, 2, func(_ int, after time.Duration) float64 {
		if after > 10*minute {
			return 12
		}
		return 3
	})
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

func TestATargetThatAnotherClientWroteIsNotFollowed(t *testing.T) {
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
		"the owner is being deleted": func(s *decide.Seen) { s.Trouble = "the owner is being deleted" },
		"no load is known of partition 2: the source says nothing about that, or not for long enough": func(s *decide.Seen) { s.Loads.Missing = placement.Of(2) },
		"no load is known of partition 2: queue q2 is down": func(s *decide.Seen) {
			s.Loads.Missing, s.Loads.Why = placement.Of(2), "queue q2 is down"
		},
		"no usable reading for 2m0s, longer than --max-age 1m0s": func(s *decide.Seen) { s.Loads.At = now.Add(-2 * minute) },
		"says nothing of partition 1 any more, for 2m0s": func(s *decide.Seen) {
			s.Loads.At, s.Loads.Silent = now.Add(-2*minute), placement.Of(1)
		},
		"for 2m0s, longer than --max-age 1m0s: queue q1 is down": func(s *decide.Seen) {
			s.Loads.At, s.Loads.Silent, s.Loads.Why = now.Add(-2*minute), placement.Of(1), "queue q1 is down"
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
