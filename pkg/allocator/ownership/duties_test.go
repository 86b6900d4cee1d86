package ownership

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// process is what one instance knows of itself.
type process struct {
	view                  View
	held, locked, yielded placement.Set
	keeps                 bool
}

// process draws an instance and a clean moment of its owner. The instance locks what it holds, and nothing that it yields.
func (t draw) process() process {
	b := t.before()
	p := process{view: View{
		Count: t.upTo(ids, "N"), Row: b, Clean: true, ID: t.upTo(ids-1, "id"), Target: ownersOf(t.division("wished target")), Strategies: placement.Named,
	}}
	for q := range parts {
		switch t.upTo(3, "held, locked, yielded, or none") {
		case 1:
			p.held, p.locked = p.held.Union(placement.Of(q)), p.locked.Union(placement.Of(q))
		case 2:
			p.locked = p.locked.Union(placement.Of(q))
		case 3:
			p.yielded = p.yielded.Union(placement.Of(q))
		}
	}
	p.keeps = t.oneIn(4, "keeps")
	p.view.Paused = t.oneIn(5, "paused")
	return p
}

// aim returns what the id should own.
func (p process) aim() placement.Set {
	v := p.view
	if v.Paused {
		return placement.Set{}
	}
	strategy, err := placement.Named(v.Row.Strategy)
	if err != nil {
		panic(err)
	}
	return strategy(placement.Input{
		Partitions: v.Row.Count, Count: v.Count, Members: members(v.Row, v.Count), Owners: v.Row.Owners, Target: v.Target,
	})[v.ID]
}

// knowsAllBut returns a version that does not know one strategy.
func knowsAllBut(name string) func(string) (placement.Strategy, error) {
	return func(asked string) (placement.Strategy, error) {
		if asked == name {
			return nil, errors.New("unknown")
		}
		return placement.Named(asked)
	}
}

func forAllProcesses(t *testing.T, check func(*rapid.T, process, Duties)) {
	t.Helper()
	each(t, func(t *rapid.T) {
		p := draw{t}.process()
		d := DutiesAt(p.view, p.held, p.locked, p.yielded, p.keeps)
		t.Logf("id %d of %d, %s, holds %s, locks %s, yields %s, keeps %v", p.view.ID, p.view.Count, row(p.view.Row), p.held, p.locked, p.yielded, p.keeps)
		t.Logf("take %s, lost %s, stop %s, yield %s, back %s", d.Take, d.Lost, d.Stop, d.Yield, d.Back)
		check(t, p, d)
	})
}

func TestAProcessTakesOnlyWhatTheMapNamesAndItDoesNotYield(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, d Duties) {
		mine := p.view.Row.Owners[p.view.ID]
		if extra := d.Take.Minus(mine.Minus(p.held).Minus(p.yielded)); !extra.Empty() {
			t.Fatalf("it takes %s", extra)
		}
	})
}

func TestAProcessTakesAllThatItShouldWorkOn(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, d Duties) {
		mine := p.view.Row.Owners[p.view.ID]
		if missing := mine.Intersect(p.aim()).Minus(p.held).Minus(p.yielded).Minus(d.Take); !missing.Empty() {
			t.Fatalf("nobody works on %s", missing)
		}
	})
}

// What an earlier process locked may have left work behind, so it has to be taken and stopped before it is yielded.
func TestAProcessTakesWhatAnEarlierOneLocked(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, d Duties) {
		mine := p.view.Row.Owners[p.view.ID]
		if left := mine.Intersect(p.locked).Minus(p.held).Minus(d.Take); !left.Empty() {
			t.Fatalf("%s stays locked without work", left)
		}
		if unsafe := d.Yield.Intersect(p.locked); !unsafe.Empty() {
			t.Fatalf("%s is yielded, and an earlier process may have left work on it", unsafe)
		}
	})
}

func TestAProcessLosesWhatTheMapDoesNotName(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, d Duties) {
		if lost := p.held.Minus(p.view.Row.Owners[p.view.ID]); !d.Lost.Intersect(p.held).Equal(lost) {
			t.Fatalf("it lost %s", lost)
		}
		if named := d.Lost.Intersect(p.view.Row.Owners[p.view.ID]); !named.Empty() {
			t.Fatalf("%s is its own", named)
		}
	})
}

// A lock that nobody lets go of keeps its partition from everybody.
func TestAProcessLetsGoOfEachLockThatTheMapDoesNotName(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, d Duties) {
		if left := p.locked.Minus(p.view.Row.Owners[p.view.ID]); !d.Lost.Equal(left) {
			t.Fatalf("it should let go of %s", left)
		}
	})
}

// A foreign write stops no work.
func TestAProcessHasNoDutiesWhileTheMapIsNotClean(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, _ Duties) {
		p.view.Clean = false
		d := DutiesAt(p.view, p.held, p.locked, p.yielded, p.keeps)
		if all := d.Take.Union(d.Lost).Union(d.Stop).Union(d.Yield).Union(d.Back); !all.Empty() {
			t.Fatalf("it does something about %s", all)
		}
	})
}

// An earlier process may have yielded it, in a receipt that somebody removed.
func TestAProcessAtOrAboveTheCountTakesOnlyWhatIsLocked(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, d Duties) {
		if extra := d.Take.Minus(p.locked); p.view.ID >= p.view.Count && !p.keeps && !extra.Empty() {
			t.Fatalf("it takes %s", extra)
		}
	})
}

func TestAProcessAtOrAboveTheCountYieldsNothingButItsSlot(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, d Duties) {
		if p.view.ID >= p.view.Count && !d.Stop.Union(d.Yield).Empty() {
			t.Fatalf("it stops %s and yields %s", d.Stop, d.Yield)
		}
	})
}

func TestAProcessStopsWhatItShouldNotHaveAndNothingElse(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, d Duties) {
		want := p.held.Intersect(p.view.Row.Owners[p.view.ID]).Minus(p.aim())
		if p.keeps || p.view.ID >= p.view.Count {
			return // it yields nothing
		}
		if !d.Stop.Equal(want) {
			t.Fatalf("it should stop %s", want)
		}
	})
}

func TestAProcessThatCannotStopYieldsNothing(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, d Duties) {
		if p.keeps && !d.Stop.Union(d.Yield).Empty() {
			t.Fatal("it cannot know that its work has stopped")
		}
	})
}

func TestAProcessThatDoesNotKnowTheStrategyYieldsNothing(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, _ Duties) {
		p.view.Strategies = knowsAllBut(p.view.Row.Strategy)
		d := DutiesAt(p.view, p.held, p.locked, p.yielded, p.keeps)
		if !d.Stop.Union(d.Yield).Empty() {
			t.Fatalf("it stops %s and yields %s", d.Stop, d.Yield)
		}
		if lost := p.view.Row.Owners[p.view.ID].Minus(p.held).Minus(p.yielded).Minus(d.Take); !lost.Empty() {
			t.Fatalf("nobody works on %s", lost)
		}
	})
}

func TestAProcessYieldsAtOnceOnlyItsOwnThatItHasNotBegun(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, d Duties) {
		fits := p.view.Row.Owners[p.view.ID].Minus(p.held).Minus(p.locked).Minus(p.aim())
		if wrong := d.Yield.Minus(fits); !wrong.Empty() {
			t.Fatalf("it yields %s", wrong)
		}
		if left := fits.Minus(p.yielded).Minus(d.Yield); !p.keeps && p.view.ID < p.view.Count && !left.Empty() {
			t.Fatalf("%s goes nowhere", left)
		}
	})
}

func TestAYieldIsTakenBackOnlyWhenTheMapHasTakenItAway(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, d Duties) {
		if back := p.yielded.Minus(p.view.Row.Owners[p.view.ID]); !d.Back.Equal(back) {
			t.Fatalf("it may take %s back", back)
		}
	})
}

func TestNoPartitionHasTwoDuties(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, _ process, d Duties) {
		all, n := placement.Set{}, 0
		for _, s := range []placement.Set{d.Take, d.Lost, d.Stop, d.Yield} {
			all, n = all.Union(s), n+s.Len()
		}
		if all.Len() != n {
			t.Fatal("a partition has two duties")
		}
	})
}

func TestAnAimNeedsACleanMomentAndAKnownStrategy(t *testing.T) {
	forAllProcesses(t, func(t *rapid.T, p process, _ Duties) {
		if aim, ok := p.view.Aim(); !ok || !aim.Equal(p.aim()) {
			t.Fatalf("aim %s (%v), not %s", aim, ok, p.aim())
		}
		unknown, doubted, none := p.view, p.view, p.view
		unknown.Strategies, doubted.Clean, none.Row = knowsAllBut(p.view.Row.Strategy), false, nil
		for _, v := range []View{unknown, doubted} {
			if aim, ok := v.Aim(); ok || !aim.Empty() {
				t.Fatalf("aim %s at %+v", aim, v)
			}
		}
		if aim, _ := none.Aim(); !aim.Empty() || !none.Mine().Empty() {
			t.Fatalf("aim %s, and has %s of nothing", aim, none.Mine())
		}
	})
}
