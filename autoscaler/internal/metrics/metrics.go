// Package metrics exports an autoscaler's metrics to Prometheus.
package metrics

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Metrics holds all metrics of one autoscaler. Its methods may be called concurrently with scrapes, but not with each other.
type Metrics struct {
	registry *prometheus.Registry

	leader, capacity prometheus.Gauge
	// These have no series while another process decides. Otherwise an HPA would read a 0 as the answer.
	pods, wanted, members, total, age, oversized, unassigned, stuck *prometheus.GaugeVec
	partition, id, phase                                            *prometheus.GaugeVec
	phaseSeconds, decisions, failures, undone                       *prometheus.CounterVec
	moves, moved                                                    prometheus.Counter

	settings decide.Settings
	last     time.Time
	measured time.Time // time of the oldest of the latest values
	was      decide.Phase
	labels   int // number of partitions with a series
}

const prefix = "idalloc_autoscaler_"

// New returns the metrics of an autoscaler with this version, workload and settings. Every metric names the workload, so that one Prometheus can hold those of
// several.
func New(version string, settings decide.Settings, ref kinds.Ref) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), settings: settings}
	ours := prometheus.WrapRegistererWith(prometheus.Labels{"owner_namespace": ref.Namespace, "owner_kind": ref.Kind, "owner_name": ref.Name}, m.registry)
	registered := promauto.With(ours)
	gauge := func(name, help string) prometheus.Gauge {
		return registered.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return registered.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return registered.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return registered.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	build := prometheus.GaugeOpts{Name: "idalloc_build_info", Help: "Versions of Go and idalloc. The value is 1."}
	registered.NewGaugeVec(build, []string{"goversion", "version"}).WithLabelValues(runtime.Version(), version).Set(1)
	m.leader = gauge("leader", "1 if this process decides, 0 if another one does.")
	m.capacity = gauge("pod_capacity_units_per_second", "What one pod works off, as the flag --capacity says.")
	m.pods = gauges("pods", "The number of pods that the workload asks for.")
	m.wanted = gauges("pods_wanted", "The number of pods that the workload should ask for now.")
	m.members = gauges("members", "The number of ids among which partitions are divided.")
	m.total = gauges("load_units_per_second", "The speed of all partitions together.")
	m.age = gauges("load_age_seconds", "The age of the oldest of the latest values.")
	m.oversized = gauges("oversized_partitions", "The number of partitions that grow faster than a pod works off by itself.")
	m.unassigned = gauges("unassigned_partitions", "The number of partitions that the source has and the workload does not: no pod works on them.")
	m.stuck = gauges("move_stuck", "1 if a move takes longer than --patience.")
	m.partition = gauges("partition_load_units_per_second", "The speed of a partition.", "partition")
	m.id = gauges("id_load_units_per_second", "The speed of the partitions that an id owns, with their margins.", "id")
	m.phase = gauges("phase", "1 for the phase that the autoscaler is in.", "phase")
	m.phaseSeconds = counters("phase_seconds_total", "The time spent in each phase.", "phase")
	m.decisions = counters("decisions_total", "What was decided and written.", "action", "reason")
	m.undone = counters("scaling_undone_total", "How often another client changed the number of pods that the autoscaler had set. by is the field manager that did it.", "by")
	m.failures = counters("failures_total", "Steps in which the source, or the API server, gave no usable answer.", "of")
	m.moves = counter("partitions_moved_total", "The number of partitions that targets moved.")
	m.moved = counter("moved_units_per_second_total", "The speed of the partitions that targets moved.")
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.capacity.Set(settings.Capacity)
	for _, p := range decide.Phases() {
		m.phase.WithLabelValues(string(p)).Set(0)
		m.phaseSeconds.WithLabelValues(string(p))
	}
	for _, of := range []string{"source", "workload"} {
		m.failures.WithLabelValues(of)
	}
	return m
}

// Describe sends the descriptions of all metrics, including those without series so far.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) { m.registry.Describe(ch) }

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Leads sets whether this process decides. Otherwise it shows nothing about the workload.
func (m *Metrics) Leads(leads bool) {
	m.leader.Set(number(leads))
	if leads {
		return
	}
	for _, g := range []*prometheus.GaugeVec{m.pods, m.wanted, m.members, m.total, m.age, m.oversized, m.unassigned, m.stuck, m.partition, m.id} {
		g.Reset()
	}
	m.labels, m.last, m.measured = 0, time.Time{}, time.Time{}
	for _, p := range decide.Phases() {
		m.phase.WithLabelValues(string(p)).Set(0)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Observe updates the metrics from the report of one step.
func (m *Metrics) Observe(r loop.Report) {
	if r.SourceErr != nil {
		m.failures.WithLabelValues("source").Inc()
	}
	if r.Err != nil {
		m.failures.WithLabelValues("workload").Inc()
	}
	d := r.Decision
	unread := d.Phase == ""
	if unread {
		d.Phase = decide.Blind
	} else {
		m.measured = r.Seen.Loads.At
	}
	if !m.last.IsZero() {
		m.phaseSeconds.WithLabelValues(string(m.was)).Add(max(0, r.Now.Sub(m.last).Seconds()))
	}
	m.last, m.was = r.Now, d.Phase
	for _, p := range decide.Phases() {
		m.phase.WithLabelValues(string(p)).Set(number(p == d.Phase))
	}
	if !m.measured.IsZero() {
		m.age.WithLabelValues().Set(r.Now.Sub(m.measured).Seconds())
	}
	if unread {
		return // the rest stays as last seen
	}
	m.pods.WithLabelValues().Set(float64(r.Seen.Count))
	m.wanted.WithLabelValues().Set(float64(d.Wanted))
	m.members.WithLabelValues().Set(float64(len(r.Seen.Row)))
	m.stuck.WithLabelValues().Set(number(d.Stuck))
	m.oversized.WithLabelValues().Set(float64(len(d.Oversized)))
	m.unassigned.WithLabelValues().Set(float64(len(r.Seen.Loads.Beyond)))
	m.loads(r)
	if d.Undone != nil {
		m.undone.WithLabelValues(d.Undone.By).Inc()
	}
	if r.Done {
		m.decisions.WithLabelValues(string(d.Action), string(d.Reason)).Inc()
		for id, set := range d.Target {
			m.moves.Add(float64(set.Minus(r.Seen.Row[id]).Len()))
		}
		m.moved.Add(d.Moved)
	}
}

// loads sets the loads of partitions and ids. A partition with unknown load has no series.
func (m *Metrics) loads(r loop.Report) {
	l := r.Seen.Loads
	sum := 0.0
	for p, v := range l.Speeds {
		if l.Missing.Contains(p) {
			m.partition.DeleteLabelValues(strconv.Itoa(p))
			continue
		}
		sum += v
		m.partition.WithLabelValues(strconv.Itoa(p)).Set(v)
	}
	for p := len(l.Speeds); p < m.labels; p++ {
		m.partition.DeleteLabelValues(strconv.Itoa(p))
	}
	m.labels = len(l.Speeds)
	m.total.WithLabelValues().Set(sum)
	m.id.Reset()
	for id, set := range r.Seen.Row {
		m.id.WithLabelValues(strconv.Itoa(id)).Set(m.load(l, set))
	}
}

func (m *Metrics) load(l decide.Loads, set placement.Set) float64 {
	sum := 0.0
	for p := range set.All() {
		if p < len(l.Speeds) {
			sum += l.Speeds[p] + m.settings.Margin
		}
	}
	return sum
}
