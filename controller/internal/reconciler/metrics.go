package reconciler

import (
	"cmp"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// Metrics are the metrics of the controller.
type Metrics struct {
	assigned           prometheus.Histogram
	removals, failed   *prometheus.CounterVec
	refused, conflicts prometheus.Counter
	missing, away      *prometheus.GaugeVec
	gated, oldest      *prometheus.Desc
	behind             *prometheus.Desc
	now                func() time.Time
	// pods lists the pods in the cache. They also count if the passes of their owner fail.
	pods func() []corev1.Pod
	// leads reports whether this replica is elected. Other replicas know how many pods wait, but not why.
	leads func() bool

	mu    sync.Mutex
	waits map[kinds.Ref][]decision.Wait
	// counts are pods that started with another count.
	counts map[kinds.Ref][]decision.Behind
}

// unseen is the reason for a pod that no pass has reported.
const unseen decision.Reason = "unseen"

// NewMetrics returns the metrics, a prometheus.Collector. Each scrape calls pods and leads.
func NewMetrics(now func() time.Time, pods func() []corev1.Pod, leads func() bool) *Metrics {
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
			Name: "idalloc_controller_failed_writes_total", Help: "Writes that failed and are retried, by step.",
		}, []string{"step"}),
		missing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "idalloc_controller_missing_kinds", Help: "Kinds of --kind that the cluster does not have. Their pods get no ids.",
		}, []string{"kind"}),
		away: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "idalloc_controller_missing_namespaces", Help: "Namespaces of --namespace in which the controller may not list pods. Their pods get no ids.",
		}, []string{"namespace"}),
		gated:  prometheus.NewDesc("idalloc_controller_gated_pods", "Pods that have no id yet, by reason, as the elected replica knows it.", []string{"reason"}, nil),
		oldest: prometheus.NewDesc("idalloc_controller_oldest_gated_pod_age_seconds", "Age of the oldest pod that has no id yet, 0 if there is none.", nil, nil),
		behind: prometheus.NewDesc("idalloc_controller_other_count_pods", "Pods whose containers started with another count, by what they wait for.", []string{"stage"}, nil),
		now:    now, pods: pods, leads: leads, waits: map[kinds.Ref][]decision.Wait{}, counts: map[kinds.Ref][]decision.Behind{},
	}
}

// BuildInfo returns the metric idalloc_build_info, which every program of idalloc has.
func BuildInfo(version string) prometheus.Collector {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "idalloc_build_info", Help: "Versions of Go and idalloc. The value is 1."}, []string{"goversion", "version"})
	g.WithLabelValues(runtime.Version(), version).Set(1)
	return g
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.counted() {
		c.Describe(to)
	}
	to <- m.gated
	to <- m.behind
	to <- m.oldest
}

func (m *Metrics) counted() []prometheus.Collector {
	return []prometheus.Collector{m.assigned, m.removals, m.refused, m.conflicts, m.failed, m.missing, m.away}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.counted() {
		c.Collect(to)
	}
	reasons, oldest := map[decision.Reason]int{}, 0.0
	known, stages := m.reported()
	for _, pod := range m.pods() {
		reason, waits := known[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
		ours := pod.Labels[receipt.AssignLabel] == receipt.ByController
		has := ours && pod.Annotations[receipt.IDKey] != ""
		if !ours && !waits { // its process locks, and no pass may have reported it
			text := pod.Annotations[receipt.Key]
			r, err := receipt.Parse(text)
			has = pod.Labels[receipt.AssignLabel] != receipt.ByAgent || text != "" && (err != nil || r.State == receipt.Locks)
		}
		if has || census.Finished(string(pod.Status.Phase)) {
			continue
		}
		reasons[cmp.Or(reason, unseen)]++
		oldest = max(oldest, m.now().Sub(pod.CreationTimestamp.Time).Seconds())
	}
	if m.leads() {
		for reason, n := range reasons {
			to <- prometheus.MustNewConstMetric(m.gated, prometheus.GaugeValue, float64(n), string(reason))
		}
		for stage, n := range stages {
			to <- prometheus.MustNewConstMetric(m.behind, prometheus.GaugeValue, float64(n), string(stage))
		}
	}
	to <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, oldest)
}

// reported returns why pods wait, and how many pods started with another count, as the passes reported it.
func (m *Metrics) reported() (known map[types.NamespacedName]decision.Reason, stages map[decision.Stage]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, stages = map[types.NamespacedName]decision.Reason{}, map[decision.Stage]int{}
	for ref, waits := range m.waits {
		for _, w := range waits {
			known[types.NamespacedName{Namespace: ref.Namespace, Name: w.Pod}] = w.Reason
		}
	}
	for _, pods := range m.counts {
		for _, p := range pods {
			stages[p.Stage]++
		}
	}
	return known, stages
}

func (m *Metrics) observe(ref kinds.Ref, d decision.Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waits[ref] = d.Waits; len(d.Waits) == 0 {
		delete(m.waits, ref)
	}
	if m.counts[ref] = d.Behind; len(d.Behind) == 0 {
		delete(m.counts, ref)
	}
}

func (m *Metrics) forget(ref kinds.Ref) { m.observe(ref, decision.Decision{}) }

func (m *Metrics) began(after time.Duration) { m.assigned.Observe(after.Seconds()) }

func (m *Metrics) removed(cause decision.Cause) {
	words := map[decision.Cause]string{decision.CauseBroken: "broken", decision.CauseOlder: "older", decision.CauseAbove: "above", decision.CauseClashes: "clash", decision.CauseLater: "later",
		decision.CauseCount: "count",
	}
	m.removals.WithLabelValues(words[cause]).Inc()
}
