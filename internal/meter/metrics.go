// Package meter counts the events of one instance. Linked programs see it as package pkg/metrics.
package meter

import (
	"cmp"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Metrics counts the events of one instance. New creates one. Its methods are safe for concurrent use, and none of them blocks for long.
type Metrics struct {
	version string
	now     func() time.Time

	mu      sync.Mutex
	current identity.Identity
	fenced  func() bool
	counts  map[series]uint64
	claims  Histogram
	// waitingSince is the time at which the wait for an id began, zero if there is none.
	waitingSince time.Time
	// awaySince is the time at which contact with the API server was lost, zero while there is contact.
	awaySince time.Time
	// confirmed is the send time of the latest request whose answer confirmed what the instance holds; zero without strict mode. overdue is the age at which
	// that becomes news.
	confirmed time.Time
	overdue   time.Duration
	// foreign is the number of foreign pods that the last plan met, 0 while the instance does not wait for an id.
	foreign int
	// paused: the instance wants no partitions for now.
	paused bool
}

// series is one time series of a counter: the metric, and the value of its label, or "".
type series struct{ name, value string }

// New returns Metrics with all counters at 0, for an instance that begins to wait for its first id.
func New() *Metrics { return NewOf(builtVersion()) }

// NewOf is New for a program that knows the version of idalloc.
func NewOf(version string) *Metrics {
	bounds := []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	m := &Metrics{
		version: version, now: time.Now, counts: map[series]uint64{},
		current: identity.Pending("", ""), claims: Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds))},
	}
	m.waitingSince = m.now()
	return m
}

// builtVersion returns the version of this module in the program.
func builtVersion() string {
	const module, unknown = "github.com/idalloc/idalloc", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	if info.Main.Path == module {
		return cmp.Or(info.Main.Version, unknown)
	}
	if i := slices.IndexFunc(info.Deps, func(d *debug.Module) bool { return d.Path == module }); i >= 0 {
		return cmp.Or(info.Deps[i].Version, unknown)
	}
	return unknown
}

// CheckFenced makes each reading call fenced, which reports whether the deadline of the id has passed (strict mode). A process that was suspended finds that
// out only when it is asked. fenced must not block and must not call the Metrics.
func (m *Metrics) CheckFenced(fenced func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fenced = fenced
}

// Observe implements event.Observer.
func (m *Metrics) Observe(e event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e := e.(type) {
	case event.Published:
		m.current = e.To
		if e.To.State == identity.StateReleased {
			m.waitingSince = time.Time{}
		}
	case event.Claiming:
		if m.waitingSince.IsZero() {
			m.waitingSince = m.now()
		}
	case event.Claimed:
		m.waitingSince, m.foreign = time.Time{}, 0
		m.count(claims, string(e.Result))
		if e.Result == event.ClaimTaken {
			m.claims.observe(e.Took.Seconds())
		}
	case event.Contact:
		m.confirmed, m.overdue = m.now().Add(-e.Age), e.Overdue
	case event.Away:
		m.awaySince = e.Since
	case event.Back:
		m.awaySince = time.Time{}
	default:
		m.observeSlot(e)
	}
}

// observeSlot counts events of the slot and the map.
func (m *Metrics) observeSlot(e event.Event) {
	switch e := e.(type) {
	case event.Taken:
		m.count(takes, taken)
	case event.NotTaken:
		m.count(takes, notTaken)
	case event.Conflict:
		m.count(conflicts, "")
	case event.Planned:
		if e.Err != nil {
			m.count(plans, failed)
		} else {
			m.count(plans, made)
			if !m.waitingSince.IsZero() { // otherwise it plans so rarely that the number would go stale
				m.foreign = len(e.Foreign)
			}
		}
	case event.Written:
		m.count(writes, "")
		for _, f := range e.Freed {
			m.count(frees, string(f.Cause))
		}
	case event.Damaged:
		m.count(restores, "")
	case event.Given:
		if e.Requester != "" {
			m.count(gives, handOver)
		} else {
			m.count(gives, move)
		}
	case event.GivenBack:
		m.count(gives, giveBack)
	case event.Lost:
		m.count(losses, "")
	case event.Fenced:
		m.count(fences, "")
		m.confirmed = time.Time{} // nothing is held, so nothing can be confirmed
	case event.Paused:
		m.paused = e.Paused
	case event.PartitionsMoved:
		m.counts[series{moves, ""}] += uint64(max(e.Given, 0))
	}
}

func (m *Metrics) count(name, value string) { m.counts[series{name, value}]++ }

// identity returns the current identity, or its fenced form if its deadline has passed. The caller must hold the lock.
func (m *Metrics) identity() identity.Identity {
	if m.current.Assigned() && m.fenced != nil && m.fenced() {
		return m.current.Without(identity.StateFenced)
	}
	return m.current
}

// contactAge returns how long contact has been lost.
func (m *Metrics) contactAge() time.Duration {
	now, age := m.now(), time.Duration(0)
	if !m.awaySince.IsZero() {
		age = now.Sub(m.awaySince)
	}
	if since := now.Sub(m.confirmed); !m.confirmed.IsZero() && m.current.Assigned() && since > m.overdue {
		age = max(age, since)
	}
	return max(age, 0)
}

// waiting returns how long the instance has waited for an id.
func (m *Metrics) waiting() time.Duration {
	if m.waitingSince.IsZero() {
		return 0
	}
	return max(m.now().Sub(m.waitingSince), 0)
}

// Histogram is the value of a histogram.
type Histogram struct {
	// Bounds are the upper bounds of the buckets, in ascending order. Counts holds the number of values in each bucket, without those of lower buckets.
	Bounds []float64
	Counts []uint64
	// Count and Sum include all values, even those above the last bound.
	Count uint64
	Sum   float64
}

func (h *Histogram) observe(value float64) {
	h.Count++
	h.Sum += value
	if i, _ := slices.BinarySearch(h.Bounds, value); i < len(h.Bounds) {
		h.Counts[i]++
	}
}

func (h *Histogram) clone() *Histogram {
	c := *h
	c.Counts = slices.Clone(h.Counts)
	return &c
}
