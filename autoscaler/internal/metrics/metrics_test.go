package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/metrics"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/placement"
)

func report(second int64, phase decide.Phase) loop.Report {
	return loop.Report{
		Now: time.Unix(second, 0),
		Seen: decide.Seen{
			Count: 2, Partitions: 3, Row: placement.Owners{0: placement.Of(0, 1), 1: placement.Of(2)},
			Loads: decide.Loads{Speeds: []float64{5, 7, 0}, Missing: placement.Of(2), At: time.Unix(second-4, 0)},
		},
		Decision: decide.Decision{Phase: phase, Action: decide.Nothing, Wanted: 2},
	}
}

func scrape(m *metrics.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String()
}

func observed() *metrics.Metrics {
	m := metrics.New("v1.2.3", decide.Settings{Capacity: 100, Margin: 1}, kinds.Ref{Kind: kinds.Deployment, Namespace: "demo", Name: "worker"})
	m.Leads(true)
	m.Observe(report(100, decide.Idle))
	r := report(105, decide.Acting)
	r.Done = true
	r.Decision.Undone = &decide.Undone{From: 3, To: 2, By: "argocd-controller"}
	r.Decision.Action, r.Decision.Reason, r.Decision.Moved = decide.Assign, decide.Overload, 7
	r.Decision.Target = placement.Owners{0: placement.Of(0), 1: placement.Of(1, 2)}
	m.Observe(r)
	m.Observe(loop.Report{Now: time.Unix(105, 0), SourceErr: errors.New("down"), Err: errors.New("down")})
	return m
}

func TestTheVersionIsShown(t *testing.T) {
	if text := scrape(observed()); !strings.Contains(text, `,version="v1.2.3"} 1`) || !strings.Contains(text, "idalloc_build_info{goversion=") {
		t.Errorf("metrics are\n%s", text)
	}
}

func TestWhatAStepSawAndDidIsShown(t *testing.T) {
	text := scrape(observed())
	// Each line has the labels of the workload among its own.
	const whose = `owner_kind="Deployment",owner_name="worker",owner_namespace="demo"`
	text = strings.NewReplacer("{"+whose+"}", "", whose+",", "", ","+whose, "").Replace(text)
	for _, line := range []string{
		"leader 1", "pods 2", "pods_wanted 2", "members 2", "pod_capacity_units_per_second 100", "load_units_per_second 12", "load_age_seconds 4",
		`partition_load_units_per_second{partition="0"} 5`, `id_load_units_per_second{id="0"} 14`, `phase{phase="blind"} 1`, `phase{phase="idle"} 0`,
		`phase_seconds_total{phase="idle"} 5`, `decisions_total{action="assign",reason="Overload"} 1`, "partitions_moved_total 1",
		`scaling_undone_total{by="argocd-controller"} 1`,
		"moved_units_per_second_total 7", `failures_total{of="source"} 1`, `failures_total{of="workload"} 1`, "move_stuck 0", "oversized_partitions 0", "unassigned_partitions 0",
	} {
		if !strings.Contains(text, "\nidalloc_autoscaler_"+line+"\n") {
			t.Errorf("%s is not there", line)
		}
	}
	if strings.Contains(text, `{partition="2"}`) {
		t.Error("a partition of which nothing is known has a load")
	}
}

func TestWhoDoesNotLeadSaysNothingOfTheWorkload(t *testing.T) {
	m := observed()
	m.Leads(false)
	text := scrape(m)
	for _, name := range []string{"pods{", "pods_wanted", "partition_load", "id_load", "members"} {
		if strings.Contains(text, "\nidalloc_autoscaler_"+name) {
			t.Errorf("%s has a value", name)
		}
	}
	if !strings.Contains(text, "\nidalloc_autoscaler_leader{owner_kind=\"Deployment\",owner_name=\"worker\",owner_namespace=\"demo\"} 0\n") {
		t.Error("it does not say that it does not lead")
	}
}

// Who looks at a dashboard must not see a workload at rest, with loads of this moment.
func TestAWorkloadThatCannotBeReadIsNotIdle(t *testing.T) {
	m := metrics.New("v1.2.3", decide.Settings{Capacity: 100}, kinds.Ref{Kind: kinds.Deployment, Namespace: "demo", Name: "worker"})
	m.Leads(true)
	m.Observe(report(100, decide.Idle))
	for second := int64(105); second <= 3700; second += 5 {
		m.Observe(loop.Report{Now: time.Unix(second, 0), Err: errors.New("down")})
	}
	m.Observe(report(3705, decide.Idle))
	m.Observe(loop.Report{Now: time.Unix(3710, 0), Err: errors.New("down")})
	text := scrape(m)
	for _, line := range []string{`phase{.*phase="blind"} 1`, `phase{.*phase="idle"} 0`, `load_age_seconds{.*} 9`, `phase_seconds_total{.*phase="idle"} 10`, `phase_seconds_total{.*phase="blind"} 3600`} {
		if !regexp.MustCompile("\nidalloc_autoscaler_" + line + "\n").MatchString(text) {
			t.Errorf("%s is not there", line)
		}
	}
}

// names returns the names of all metrics, in order.
func names(t *testing.T) []string {
	t.Helper()
	types := regexp.MustCompile(`# TYPE idalloc_autoscaler_(\w+)`).FindAllStringSubmatch(scrape(observed()), -1)
	all := make([]string, 0, len(types))
	for _, m := range types {
		all = append(all, m[1])
	}
	return all
}

func root(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheDashboardHasAllMetricsAndNoOther(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(root(t, "autoscaler", "config", "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			for _, m := range regexp.MustCompile(`idalloc_autoscaler_(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				used[m[1]] = true
			}
		}
	}
	for _, name := range names(t) {
		if !used[name] {
			t.Errorf("no panel shows %s", name)
		}
		delete(used, name)
	}
	if len(used) > 0 {
		t.Errorf("panels show %v, which do not exist", used)
	}
}
