package reconciler

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// A right was taken away, or the owner's kind is not known: no pass tells of the pods, and that is when the alert is needed.
func TestPodsThatWaitAreCountedAlthoughNoPassSucceeds(t *testing.T) {
	now := time.Unix(10_000, 0)
	pod := func(name string, age time.Duration, annotations map[string]string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age)), Annotations: annotations,
			Labels: map[string]string{receipt.AssignLabel: receipt.ByController},
		}}
	}
	leads := true
	m := NewMetrics(func() time.Time { return now }, func() []corev1.Pod {
		return []corev1.Pod{pod("a", time.Minute, nil), pod("b", time.Hour, nil), pod("has one", 2*time.Hour, map[string]string{receipt.IDKey: "0"})}
	}, func() bool { return leads })
	m.observe(kinds.Ref{Kind: kinds.Deployment, Namespace: "shop", Name: worker}, decision.Decision{
		Waits:  []decision.Wait{{Pod: "a", Reason: decision.ReasonPaused}, {Pod: "gone", Reason: decision.ReasonSlots}},
		Behind: []decision.Behind{{Pod: "b", Started: "3", Stage: decision.StageQueued}},
	})
	for _, want := range []map[string]float64{{"paused": 1, "unseen": 1, "": 3600, "queued": 1}, {"": 3600}} {
		if got := gauges(t, m); !maps.Equal(got, want) {
			t.Errorf("leads: %v, metrics: %v, want %v", leads, got, want)
		}
		leads = false
	}
}

// An agent locks by itself, so its receipt says whether it has an id.
func TestAgentsThatWaitAreCountedAlthoughNoPassSucceeds(t *testing.T) {
	now := time.Unix(10_000, 0)
	agent := func(name string, age time.Duration, r *receipt.Receipt) corev1.Pod {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: "u", CreationTimestamp: metav1.NewTime(now.Add(-age)), Labels: map[string]string{receipt.AssignLabel: receipt.ByAgent},
		}}
		if r != nil {
			pod.Annotations = map[string]string{receipt.Key: r.Encode()}
		}
		return pod
	}
	m := NewMetrics(func() time.Time { return now }, func() []corev1.Pod {
		return []corev1.Pod{
			agent("a", time.Minute, nil),
			agent("b", time.Hour, &receipt.Receipt{UID: "u", Owner: own, State: receipt.Waits, Share: receipt.Nothing(), Write: "w"}),
			agent("has one", 2*time.Hour, &receipt.Receipt{UID: "u", Owner: own, State: receipt.Locks, Share: receipt.Share{ID: 3}, Write: "w"}),
		}
	}, func() bool { return true })
	if got, want := gauges(t, m), map[string]float64{"unseen": 2, "": 3600}; !maps.Equal(got, want) {
		t.Errorf("metrics: %v, want %v", got, want)
	}
}

// An alert or a graph picks removals by their cause.
func TestEachCauseOfARemovalHasAWord(t *testing.T) {
	m := NewMetrics(time.Now, nil, nil)
	for _, cause := range []decision.Cause{decision.CauseBroken, decision.CauseOlder, decision.CauseAbove, decision.CauseClashes, decision.CauseLater, decision.CauseCount} {
		if m.removed(cause); m.removals.DeleteLabelValues("") {
			t.Errorf("no word for a pod that %s", cause)
		}
	}
}

func TestTheVersionIsAMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(BuildInfo("v1.2.3"))
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "idalloc_build_info" || families[0].GetMetric()[0].GetLabel()[1].GetValue() != "v1.2.3" {
		t.Errorf("%v: metrics are %v", err, families)
	}
}

// gauges returns the gated pods by reason, and the age of the oldest without one.
func gauges(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, one := range f.GetMetric() {
			reason := ""
			for _, l := range one.GetLabel() {
				reason = l.GetValue()
			}
			if n := f.GetName(); n == "idalloc_controller_gated_pods" || n == "idalloc_controller_other_count_pods" || n == "idalloc_controller_oldest_gated_pod_age_seconds" {
				got[reason] = one.GetGauge().GetValue()
			}
		}
	}
	return got
}
