package monitor_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
)

var start = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant that Go cannot express

func newMonitor() *monitor.Monitor { return &monitor.Monitor{Window: 30 * time.Second, Most: 1e6} }

// total is a reading of counters after so many seconds.
func total(after int, values map[int]float64) monitor.Reading {
	return monitor.Reading{At: start.Add(time.Duration(after) * time.Second), Totals: true, Values: values}
}

func rate(after int, values map[int]float64) monitor.Reading {
	r := total(after, values)
	r.Totals = false
	return r
}

func add(t *testing.T, m *monitor.Monitor, readings ...monitor.Reading) {
	t.Helper()
	for _, r := range readings {
		if err := m.Add(r); err != nil {
			t.Fatal(err)
		}
	}
}

func expect(t *testing.T, m *monitor.Monitor, speeds []float64, missing string) {
	t.Helper()
	l := m.Loads(len(speeds))
	for p, want := range speeds {
		if math.Abs(l.Speeds[p]-want) > 1e-9 {
			t.Errorf("partition %d has %g units/s, want %g", p, l.Speeds[p], want)
		}
	}
	if l.Missing.String() != missing {
		t.Errorf("missing are %q, want %q", l.Missing, missing)
	}
}

func TestTheGrowthOfTotalsIsTheSpeed(t *testing.T) {
	m := newMonitor()
	for s := 0; s <= 60; s += 5 {
		growing := float64(10 * s)
		if s > 30 {
			growing = 300 + 2*float64(s-30)
		}
		add(t, m, total(s, map[int]float64{0: 7, 1: growing, 2: 4 * float64(s)}))
		if s < 15 {
			expect(t, m, []float64{0, 0, 0}, "0-2") // half of the window is not known yet
		}
	}
	expect(t, m, []float64{0, 2, 4}, "")
	if at := m.Loads(3).At; !at.Equal(start.Add(time.Minute)) {
		t.Errorf("measured at %s", at)
	}
}

func TestAStartOverIsNoSpeedAndNoGap(t *testing.T) {
	m := newMonitor()
	add(t, m, total(0, map[int]float64{0: 1000}), total(10, map[int]float64{0: 1100}), total(20, map[int]float64{0: 5}), total(30, map[int]float64{0: 105}))
	expect(t, m, []float64{10}, "")
}

// What a total grew by in a silence says nothing of the speed now, and a speed from before it is none of now.
func TestAfterALongSilenceASpeedIsMeasuredAgain(t *testing.T) {
	m := newMonitor()
	add(t, m, total(0, map[int]float64{0: 0}), total(15, map[int]float64{0: 150}), total(30, map[int]float64{0: 300}))
	expect(t, m, []float64{10}, "")
	add(t, m, total(600, map[int]float64{0: 60000}))
	expect(t, m, []float64{0}, "0")
	add(t, m, total(610, map[int]float64{0: 60020}))
	expect(t, m, []float64{0}, "0")
	add(t, m, total(620, map[int]float64{0: 60040}))
	expect(t, m, []float64{2}, "")
}

func TestAnotherServerCountsAnew(t *testing.T) {
	m := newMonitor()
	for i, origin := range []string{"1", "1", "2", "2"} {
		r := total(10*i, map[int]float64{0: float64(10*i) + map[string]float64{"1": 0, "2": 5000}[origin]})
		r.Origins = map[int]string{0: origin}
		add(t, m, r)
	}
	expect(t, m, []float64{1}, "")
}

// counted is a reading of a server that counts once in a step, and counted first at 1.3 s.
func counted(after, step time.Duration, total func(at time.Duration) float64) monitor.Reading {
	const first = 1300 * time.Millisecond
	counts := int64((after - first) / step) // after the first
	return monitor.Reading{
		At: start.Add(after), Totals: true, Step: step, Values: map[int]float64{0: total(first + time.Duration(counts)*step)},
	}
}

func TestASteadyLoadThatIsCountedInStepsIsSteady(t *testing.T) {
	for _, period := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 3 * time.Second, 5 * time.Second} {
		for begin := 1500 * time.Millisecond; begin < 6500*time.Millisecond; begin += 500 * time.Millisecond {
			steady(t, begin, period)
		}
	}
}

// steady reads a steady load from begin on, and has the speed differ by no more than what comes of seeing a count up to a period late. At the
// start half a window is enough.
func steady(t *testing.T, begin, period time.Duration) {
	t.Helper()
	m := newMonitor()
	known := 0
	for at := begin; at < 5*time.Minute; at += period {
		add(t, m, counted(at, 5*time.Second, func(at time.Duration) float64 { return 100 * at.Seconds() }))
		l := m.Loads(1)
		if !l.Missing.Empty() {
			continue
		}
		known++
		window := min(m.Window, max(m.Window/2, at-begin-10*time.Second)) - period
		if off := math.Abs(l.Speeds[0]-100) / 100; off > period.Seconds()/window.Seconds() {
			t.Errorf("read every %s from %s on, 100 units/s are taken for %.1f after %s", period, begin, l.Speeds[0], at)
		}
	}
	if known == 0 {
		t.Errorf("read every %s from %s on, the speed is not known after five minutes", period, begin)
	}
}

// As RabbitMQ does with collect_statistics_interval = 60000.
func TestASteadyLoadThatIsCountedOnceAMinuteIsSteady(t *testing.T) {
	m := newMonitor()
	m.Window = 3 * time.Minute
	known := 0
	for at := 2 * time.Second; at < 20*time.Minute; at += 5 * time.Second {
		add(t, m, counted(at, time.Minute, func(at time.Duration) float64 { return 100 * at.Seconds() }))
		if l := m.Loads(1); l.Missing.Empty() {
			known++
			if l.Speeds[0] < 95 || l.Speeds[0] > 105 {
				t.Errorf("100 units/s are taken for %.1f after %s", l.Speeds[0], at)
			}
		}
	}
	if known < 180 {
		t.Errorf("the speed was known %d times", known)
	}
}

func TestALoadThatIsCountedInStepsEnds(t *testing.T) {
	m := newMonitor()
	for at := 2 * time.Second; at < 3*time.Minute; at += 2 * time.Second {
		add(t, m, counted(at, 5*time.Second, func(at time.Duration) float64 { return 100 * min(at, time.Minute).Seconds() }))
		if l := m.Loads(1); at < time.Minute && at > 30*time.Second && l.Speeds[0] < 90 {
			t.Errorf("%.1f units/s after %s", l.Speeds[0], at)
		}
	}
	expect(t, m, []float64{0}, "")
}

func TestSpeedsAreAveraged(t *testing.T) {
	m := newMonitor()
	add(t, m, rate(0, map[int]float64{0: 900}), rate(40, map[int]float64{0: 10}), rate(50, map[int]float64{0: 20, 1: 3}), rate(60, map[int]float64{0: 30}))
	expect(t, m, []float64{20, 3, 0}, "2")
	if at := m.Loads(2).At; !at.Equal(start.Add(50 * time.Second)) {
		t.Errorf("the oldest value is of %s", at)
	}
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	for want, r := range map[string]monitor.Reading{
		"NaN":             rate(10, map[int]float64{0: 5, 1: math.NaN()}),
		"value -3":        rate(10, map[int]float64{0: 5, 1: -3}),
		"+Inf":            total(10, map[int]float64{0: 5, 1: math.Inf(1)}),
		"1e+18 units/s":   rate(10, map[int]float64{0: 5, 1: 1e18}),
		"grew by 1e+18":   total(10, map[int]float64{0: 5, 1: 1e18}),
		"no partition -1": total(10, map[int]float64{-1: 1}),
		"not later":       total(0, nil),
	} {
		m := newMonitor()
		add(t, m, total(-5, map[int]float64{0: 0, 1: 0}), total(0, map[int]float64{0: 0, 1: 0}))
		err := m.Add(r)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		add(t, m, total(25, map[int]float64{0: 50}))
		expect(t, m, []float64{50.0 / 30}, "") // partition 0's 5 was not taken
	}
}

func TestAJumpIsRefusedOnce(t *testing.T) {
	m := newMonitor()
	add(t, m, total(0, map[int]float64{0: 0}))
	if m.Add(total(10, map[int]float64{0: 1e15})) == nil {
		t.Fatal("the jump was believed")
	}
	add(t, m, total(20, map[int]float64{0: 1e15}), total(40, map[int]float64{0: 1e15 + 40}))
	expect(t, m, []float64{2}, "")
}

func TestPartitionsThatVanishGrowOld(t *testing.T) {
	m := newMonitor()
	add(t, m, rate(0, map[int]float64{0: 1, 1: 1}), rate(100, map[int]float64{0: 1}))
	if at := m.Loads(2).At; !at.Equal(start) {
		t.Errorf("partition 1 was measured last at %s, and the loads say %s", start, at)
	}
}

func TestPartitionsThatTheWorkloadDoesNotHaveAreIgnored(t *testing.T) {
	m := newMonitor()
	add(t, m, rate(0, map[int]float64{0: 1, 9999: math.NaN()}))
	expect(t, m, []float64{1, 0}, "1")
	r := rate(5, map[int]float64{0: 1, 1: 2, 2: math.Inf(1)})
	r.Backlogs = map[int]float64{2: -1}
	add(t, m, r)
	expect(t, m, []float64{1, 2}, "")
	if err := m.Add(rate(10, map[int]float64{0: 1, 1: math.NaN()})); err == nil {
		t.Error("a partition of the workload may have any value")
	}
}

func TestPartitionsThatTheSourceDoesNotNameAnyMoreAreSilent(t *testing.T) {
	m := newMonitor()
	add(t, m, rate(0, map[int]float64{0: 1, 1: 2, 2: 3}), rate(5, map[int]float64{0: 1, 2: 3}))
	if l := m.Loads(3); l.Silent.String() != "1" || !l.Missing.Empty() || !l.At.Equal(start) {
		t.Errorf("%+v", l)
	}
	add(t, m, rate(10, nil)) // an empty vector
	if l := m.Loads(3); l.Silent.String() != "0-2" {
		t.Errorf("%+v", l)
	}
	add(t, m, rate(15, map[int]float64{0: 1, 1: 2, 2: 3}))
	if l := m.Loads(3); !l.Silent.Empty() {
		t.Errorf("%+v", l)
	}
}

func TestSmoothSpeedsFollowSlowly(t *testing.T) {
	m := newMonitor()
	m.Window, m.Smooth = time.Second, time.Minute
	add(t, m, rate(0, map[int]float64{0: 0}), rate(60, map[int]float64{0: 100}))
	expect(t, m, []float64{100 * (1 - 1/math.E)}, "")
}

func TestABacklogIsToBeWorkedOffInTime(t *testing.T) {
	m := newMonitor()
	r := rate(0, map[int]float64{0: 5, 1: 5})
	r.Backlogs = map[int]float64{0: 600}
	add(t, m, r)
	expect(t, m, []float64{5, 5}, "")
	m.CatchUp = time.Minute
	expect(t, m, []float64{15, 5}, "")
	for _, v := range []float64{math.NaN(), -1, 1e18} {
		r := rate(10, map[int]float64{0: 5})
		r.Backlogs = map[int]float64{0: v}
		if err := m.Add(r); err == nil || !strings.Contains(err.Error(), "backlog") {
			t.Errorf("a backlog of %g: %v", v, err)
		}
	}
}

func TestAnySpeedsAreWithinWhatWasRead(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := newMonitor()
		at, value := 0, 0.0
		for range rapid.IntRange(1, 30).Draw(r, "readings") {
			at += rapid.IntRange(1, 40).Draw(r, "seconds")
			value = max(0, value+rapid.Float64Range(-500, 500).Draw(r, "growth"))
			if err := m.Add(total(at, map[int]float64{0: value})); err != nil {
				r.Fatal(err)
			}
			if v := m.Loads(1).Speeds[0]; v < 0 || v > 500 {
				r.Fatalf("%g units/s", v)
			}
		}
	})
}
