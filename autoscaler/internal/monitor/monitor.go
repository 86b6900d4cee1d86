// Package monitor calculates the speeds of partitions from a source's readings. It is pure: the caller reads the source and the clock.
//
// Missing data is not zero. A partition has no speed if the window knows too little of it. A reading with an impossible value is refused as a whole, because a
// source that sends one wrong value may send others.
package monitor

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Reading is what a source reports at one moment.
type Reading struct {
	// At is the time of the measurement.
	At time.Time
	// Totals is true if the values are counters, whose growth is the speed. Otherwise they are speeds, in units per second.
	Totals bool
	// Step is the interval at which the server counts. Between two counts its totals do not change. 0 means that they are always up to date.
	Step time.Duration
	// Values are by partition. A missing partition was not measured; Why may explain that. Unused are numbers that match nothing in the source and do not grow.
	Values map[int]float64
	Why    map[int]string
	Unused placement.Set
	// Beyond names the parts of the source that have no number, so that no pod works on them.
	Beyond []string
	// Name returns the source's name for a partition. If Name is nil, a partition only has its number.
	Name func(partition int) string
	// Origins names the server that counted each partition, if known. Totals are compared only if their origin is the same.
	Origins map[int]string
	// Backlogs is how much of each partition is not worked off yet, in units, if known. Waiting is how much of that no pod has in hand. If Waiting is nil, the
	// amount in hand is unknown.
	Backlogs, Waiting map[int]float64
}

// Called returns the name of a partition for use in texts.
func (r Reading) Called(partition int) string {
	if r.Name == nil {
		return "partition " + strconv.Itoa(partition)
	}
	return r.Name(partition)
}

// Monitor keeps the readings of a window. It is not safe for concurrent use.
type Monitor struct {
	// Window is the time over which a speed is measured.
	Window time.Duration
	// Smooth is the time constant of a low-pass filter for the speeds. 0 means no filter.
	Smooth time.Duration
	// Most is the highest credible speed of a partition.
	Most float64
	// CatchUp is the time in which a backlog should be worked off, in addition to what comes in. With 0, backlogs do not count.
	CatchUp time.Duration

	last   time.Time
	series map[int]*series
	// latest is the last reading that Add accepted.
	latest Reading
	// count is the number of partitions in the last call of Loads, 0 before the first.
	count int
}

// series is what is known about one partition.
type series struct {
	points []point
	smooth float64
	at     time.Time // time of smooth, zero if there is none
	// backlog is the latest one, in units.
	backlog float64
}

type point struct {
	at     time.Time
	value  float64
	origin string
	totals bool
	// loose: it is not known when the server counted this, for example at the start. The time of growth up to the next count is longer than it seems.
	loose bool
}

// Add adds a reading. The error names an impossible value; then nothing of the reading counts. Partitions that the workload does not have are ignored.
func (m *Monitor) Add(r Reading) error {
	if !m.last.IsZero() && !r.At.After(m.last) {
		return fmt.Errorf("the reading of %s is not later than the one before it", r.At.UTC().Format(time.RFC3339))
	}
	if m.series == nil {
		m.series = map[int]*series{}
	}
	for p, v := range r.Backlogs {
		if m.ignores(p) {
			continue
		}
		if math.IsNaN(v) || v < 0 || (m.CatchUp > 0 && v/m.CatchUp.Seconds() > m.Most) {
			return fmt.Errorf("%s has a backlog of %g, which is not believed: the whole reading is refused", r.Called(p), v)
		}
	}
	partitions := make([]int, 0, len(r.Values))
	for p, v := range r.Values {
		if m.ignores(p) {
			continue
		}
		if err := m.check(p, v, r); err != nil {
			return err
		}
		partitions = append(partitions, p)
	}
	for p := range r.Unused.All() {
		if !m.ignores(p) {
			partitions = append(partitions, p) // with the value 0
		}
	}
	m.last, m.latest = r.At, r
	slices.Sort(partitions)
	for _, p := range partitions {
		s := m.series[p]
		if s == nil {
			s = &series{}
			m.series[p] = s
		}
		s.add(point{at: r.At, value: r.Values[p], origin: r.Origins[p], totals: r.Totals}, m.Window, r.Step)
		s.backlog = r.Backlogs[p]
		m.filter(s, r.At)
	}
	return nil
}

func (m *Monitor) ignores(p int) bool {
	return p < 0 || p >= placement.MaxCount || (m.count > 0 && p >= m.count)
}

// check returns an error if a partition cannot have this value.
func (m *Monitor) check(p int, v float64, r Reading) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0) || v < 0:
		return fmt.Errorf("%s has the value %g, which is no speed and no total: the whole reading is refused", r.Called(p), v)
	case !r.Totals && v > m.Most:
		return fmt.Errorf("%s has %g units/s, and more than %g is not believed: the whole reading is refused", r.Called(p), v, m.Most)
	case !r.Totals:
		return nil
	}
	s := m.series[p]
	if s == nil || len(s.points) == 0 {
		return nil
	}
	before, now := s.points[len(s.points)-1], point{at: r.At, value: v, origin: r.Origins[p], totals: true}
	if grown, took, ok := growth(before, now); ok && grown/took.Seconds() > m.Most {
		delete(m.series, p) // otherwise the same jump would be refused again and again
		return fmt.Errorf("%s grew by %g in %s, and more than %g units/s are not believed: the whole reading is refused", r.Called(p), grown, took, m.Most)
	}
	return nil
}

// growth returns how much a total grew. ok is false if the two points are not comparable: the counter was reset, or another server counts.
func growth(from, to point) (grown float64, took time.Duration, ok bool) {
	return to.value - from.value, to.at.Sub(from.at), to.value >= from.value && from.origin == to.origin && from.totals && to.totals
}

// add appends a point and drops those outside the window. One point just outside stays, so that the window is full.
//
// If the server counts in steps, only points at which it has counted are kept. A window with any other ends would contain one step more at some times than at
// others, and a steady load would seem to swing. A total that does not change for two steps has not grown.
func (s *series) add(p point, window, step time.Duration) {
	p.loose = step > 0
	if step > 0 && len(s.points) > 0 {
		grown, took, ok := growth(s.points[len(s.points)-1], p)
		if ok && grown == 0 && took < 2*step {
			return
		}
		p.loose = !ok
	}
	s.points = append(s.points, p)
	for len(s.points) > 2 && p.at.Sub(s.points[1].at) >= window {
		s.points = s.points[1:]
	}
}

// speed returns the mean speed over the window. known is false if too little of the window is known. For totals that is less than half of it, for example at
// the start or after a counter was reset.
func (s *series) speed(window time.Duration) (speed float64, known bool) {
	last := s.points[len(s.points)-1]
	if !last.totals {
		sum, n := 0.0, 0
		for _, p := range s.points {
			if !p.totals && last.at.Sub(p.at) <= window {
				sum, n = sum+p.value, n+1
			}
		}
		return sum / float64(n), true
	}
	grown, took := 0.0, time.Duration(0)
	for i := 1; i < len(s.points); i++ {
		from := s.points[i-1]
		g, t, ok := growth(from, s.points[i])
		// Skip old intervals, for example from before a time in which the source was silent.
		if ok && last.at.Sub(from.at) <= 2*window && (g == 0 || !from.loose) {
			grown, took = grown+g, took+t
		}
	}
	if took <= 0 || 2*took < window {
		return 0, false
	}
	return grown / took.Seconds(), true
}

// filter updates the smooth speed.
func (m *Monitor) filter(s *series, now time.Time) {
	speed, known := s.speed(m.Window)
	switch {
	case !known:
		s.at = time.Time{}
	case s.at.IsZero() || m.Smooth <= 0:
		s.smooth, s.at = speed, now
	default:
		s.smooth += (speed - s.smooth) * -math.Expm1(-now.Sub(s.at).Seconds()/m.Smooth.Seconds())
		s.at = now
	}
}

// Loads returns the speeds of this many partitions. From then on, readings of other partitions are ignored.
func (m *Monitor) Loads(partitions int) decide.Loads {
	m.count = partitions
	l := decide.Loads{Speeds: make([]float64, partitions), Comes: make([]float64, partitions), Beyond: m.beyond()}
	var missing, silent []int
	for p := range partitions {
		s := m.series[p]
		if s == nil || s.at.IsZero() {
			missing = append(missing, p)
			continue
		}
		l.Speeds[p], l.Comes[p] = s.smooth, s.smooth
		if m.CatchUp > 0 {
			l.Speeds[p] += s.backlog / m.CatchUp.Seconds()
		}
		if s.at.Before(m.last) {
			silent = append(silent, p)
		}
		if l.At.IsZero() || s.at.Before(l.At) {
			l.At = s.at
		}
	}
	l.Missing, l.Silent = placement.Of(missing...), placement.Of(silent...)
	for _, p := range append(missing, silent...)[:min(1, len(missing)+len(silent))] {
		l.Why = m.why(p)
	}
	return l
}

// why explains why the last reading had no value for a partition. It is empty if there was a value.
func (m *Monitor) why(p int) string {
	if why := m.latest.Why[p]; why != "" {
		return why
	}
	if _, measured := m.latest.Values[p]; measured || m.last.IsZero() {
		return ""
	}
	return "the source says nothing of " + m.latest.Called(p)
}

// beyond names the parts of the source for which the workload has no partition.
func (m *Monitor) beyond() []string {
	if m.count == 0 {
		return nil
	}
	names := m.latest.Beyond
	for _, p := range slices.Sorted(maps.Keys(m.latest.Values)) {
		if p >= m.count {
			names = append(slices.Clip(names), m.latest.Called(p))
		}
	}
	return names
}
