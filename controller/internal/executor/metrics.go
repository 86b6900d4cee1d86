package executor

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idalloc/idalloc/controller/internal/heart"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Metrics are what the controller counts.
type Metrics struct {
	assigned           prometheus.Histogram
	removals, failed   *prometheus.CounterVec
	refused, conflicts prometheus.Counter
	gated, oldest      *prometheus.Desc
	now                func() time.Time

	mu    sync.Mutex
	waits map[store.Ref][]heart.Wait
}

// NewMetrics returns the metrics. They are a prometheus.Collector.
func NewMetrics(now func() time.Time) *Metrics {
	return &Metrics{
		assigned: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "idalloc_controller_assign_seconds", Help: "Time from a pod's creation until it has its id.",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300},
		}),
		removals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "idalloc_controller_removals_total", Help: "Pods that were removed so that others get their ids, by cause.",
		}, []string{"cause"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "idalloc_controller_removals_refused_total", Help: "Removals that the API server refused, such as for a PodDisruptionBudget.",
		}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "idalloc_controller_conflicts_total", Help: "Writes that failed because the object had changed since it was read.",
		}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "idalloc_controller_failed_writes_total", Help: "Writes that failed and come again, by step.",
		}, []string{"step"}),
		gated:  prometheus.NewDesc("idalloc_controller_gated_pods", "Pods that have no id yet, by reason.", []string{"reason"}, nil),
		oldest: prometheus.NewDesc("idalloc_controller_oldest_gated_pod_age_seconds", "Age of the oldest pod that has no id yet, 0 if there is none.", nil, nil),
		now:    now, waits: map[store.Ref][]heart.Wait{},
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.counted() {
		c.Describe(to)
	}
	to <- m.gated
	to <- m.oldest
}

func (m *Metrics) counted() []prometheus.Collector {
	return []prometheus.Collector{m.assigned, m.removals, m.refused, m.conflicts, m.failed}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.counted() {
		c.Collect(to)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	reasons, oldest := map[heart.Reason]int{}, 0.0
	for _, waits := range m.waits {
		for _, w := range waits {
			reasons[w.Reason]++
			oldest = max(oldest, m.now().Sub(w.Since).Seconds())
		}
	}
	for reason, n := range reasons {
		to <- prometheus.MustNewConstMetric(m.gated, prometheus.GaugeValue, float64(n), string(reason))
	}
	to <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, oldest)
}

func (m *Metrics) observe(ref store.Ref, waits []heart.Wait) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waits[ref] = waits; len(waits) == 0 {
		delete(m.waits, ref)
	}
}

func (m *Metrics) forget(ref store.Ref) { m.observe(ref, nil) }

func (m *Metrics) began(after time.Duration) { m.assigned.Observe(after.Seconds()) }

func (m *Metrics) removed(cause heart.Cause) {
	word := map[heart.Cause]string{heart.CauseBroken: "broken", heart.CauseOlder: "older", heart.CauseAbove: "above", heart.CauseClashes: "clash"}[cause]
	m.removals.WithLabelValues(word).Inc()
}
