package monitor_test

import (
	"fmt"
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

func add(t *testing.T, m *monitor.Monitor, readings ...monitor.Reading) {
	t.Helper()
	for _, r := range readings {
		if err := m.Add(r); err != nil {
			t.Fatal(err)
		}
	}
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
	if l := m.Loads(1); l.Speeds[0] != 0 || !l.Missing.Empty() {
		t.Errorf("%+v", l)
	}
}

// Why a partition has no load is said of the first one.
func TestWhyNothingIsKnownIsSaid(t *testing.T) {
	m := newMonitor()
	named := func(after int, values map[int]float64) monitor.Reading {
		r := total(after, values)
		r.Why, r.Name = map[int]string{1: "queue q1 is down"}, func(p int) string { return fmt.Sprint("queue q", p) }
		return r
	}
	expect := func(want string) {
		t.Helper()
		if l := m.Loads(3); l.Why != want {
			t.Errorf("%q, want %q", l.Why, want)
		}
	}
	expect("")
	add(t, m, named(0, map[int]float64{0: 0, 2: 0}))
	expect("") // partition 0 has a value, and not for long enough
	add(t, m, named(30, map[int]float64{0: 30, 2: 0}))
	expect("queue q1 is down")
	m = newMonitor()
	add(t, m, named(0, map[int]float64{1: 0, 2: 0}))
	expect("the source says nothing of queue q0")
	m = newMonitor()
	add(t, m, total(0, map[int]float64{0: 0, 1: 0, 2: 0}), total(30, map[int]float64{0: 0, 1: 0, 2: 0}), named(60, map[int]float64{0: 0, 2: 0}))
	expect("queue q1 is down") // what was known before is old
	if err := m.Add(named(90, map[int]float64{0: 0, 2: math.NaN()})); err == nil || !strings.Contains(err.Error(), "queue q2 has the value NaN") {
		t.Error(err)
	}
}

func TestWhatComesIsApartFromWhatWaits(t *testing.T) {
	m := newMonitor()
	m.CatchUp = time.Minute
	r := monitor.Reading{At: start, Values: map[int]float64{0: 5}, Backlogs: map[int]float64{0: 600}}
	add(t, m, r)
	if l := m.Loads(1); l.Speeds[0] != 15 || l.Comes[0] != 5 {
		t.Errorf("%g, of which %g comes", l.Speeds[0], l.Comes[0])
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
