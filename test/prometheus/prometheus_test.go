package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/internal/meter"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	// patience is many times what the test needs.
	patience = 10 * time.Minute
	name     = "worker"
)

func TestPrometheusSeesAWorkload(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	env, err := suite.Start(ctx, suite.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, env.Stop()) })
	namespace, err := env.NewNamespace(ctx)
	must(t, err)
	deploy(ctx, t, env, namespace, 3)
	p := start(ctx, t, namespace)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(logs(context.WithoutCancel(ctx), env, namespace))
		}
	})

	p.becomes(ctx, t, "sum(idalloc_id_held)", "3")
	p.becomes(ctx, t, "count(count_values('id', idalloc_id) == 1)", "3")
	p.becomes(ctx, t, "sum(idalloc_partitions_owned)", "12")
	p.becomes(ctx, t, `sum(idalloc_claims_total{result="taken"})`, "3")
	p.becomes(ctx, t, `count(idalloc_owner_info{owner_kind="Deployment",owner_name="worker",namespace="`+namespace.Name+`"})`, "3")
	p.becomes(ctx, t, "sum(idalloc_restores_total)", "0")

	must(t, namespace.Scale(ctx, kinds.Deployment, name, 5))
	p.becomes(ctx, t, "sum(idalloc_id_held)", "5")
	p.becomes(ctx, t, "min(idalloc_slots)", "5")
	tamper(ctx, t, env, namespace)
	p.until(ctx, t, "the restore is counted", "sum(idalloc_restores_total) > 0", func(got []sample) bool { return len(got) == 1 })
	must(t, namespace.Scale(ctx, kinds.Deployment, name, 2))
	p.becomes(ctx, t, "sum(idalloc_id_held)", "2")
	p.becomes(ctx, t, "max(idalloc_slots)", "2")

	p.becomes(ctx, t, "count(up) == sum(up)", "2") // only the port of the name idalloc is scraped
	t.Run("each metric is scraped", func(t *testing.T) { testEachMetric(ctx, t, p) })
	t.Run("each query of the dashboard is answered", func(t *testing.T) { testTheDashboard(ctx, t, p, namespace.Name) })
	t.Run("each rule is evaluated", func(t *testing.T) { testTheRules(ctx, t, p) })
	t.Run("promtool has nothing to say against the metrics", func(t *testing.T) { testWhatAPodSays(ctx, t, namespace) })
}

func TestThePromtoolTestsOfTheRulesPass(t *testing.T) {
	promtool(t.Context(), t, nil, "test", "rules", config(t, "prometheus", "rules_test.yaml"))
}

// Each alert has a test that fires it.
func TestEachAlertFiresInATest(t *testing.T) {
	rules, err := os.ReadFile(config(t, "prometheus", "rules.yaml"))
	must(t, err)
	tests, err := os.ReadFile(config(t, "prometheus", "rules_test.yaml"))
	must(t, err)
	page, err := os.ReadFile(filepath.Join(config(t), "..", "docs", "metrics.md"))
	must(t, err)
	for line := range strings.Lines(string(rules)) {
		alert, is := strings.CutPrefix(strings.TrimSpace(line), "- alert: ")
		if !is {
			continue
		}
		if !strings.Contains(string(tests), "alertname: "+alert+"\n        exp_alerts:\n") {
			t.Errorf("no test fires %s", alert)
		}
		if !strings.Contains(string(page), "| `"+alert+"` |") {
			t.Errorf("docs/metrics.md does not say what to do about %s", alert)
		}
	}
}

// The controller does not run in these tests. So the names that the files use are compared with the page that is made from its code.
func TestTheControllersMetricsExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(config(t), "..", "docs", "reference.md"))
	must(t, err)
	for _, file := range []string{config(t, "grafana", "idalloc.json"), config(t, "prometheus", "rules.yaml")} {
		text, err := os.ReadFile(file) //nolint:gosec // the project's own
		must(t, err)
		names := regexp.MustCompile(`idalloc_controller_\w+`).FindAllString(string(text), -1)
		if len(names) == 0 {
			t.Errorf("%s shows nothing of the controller", file)
		}
		for _, name := range names {
			if !strings.Contains(string(page), "| `"+strings.TrimSuffix(name, "_bucket")+"` |") {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
	}
}

// promtool runs it and fails with what it prints. It prints warnings and succeeds.
func promtool(ctx context.Context, t *testing.T, stdin io.Reader, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "promtool", args...) //nolint:gosec // the arguments are the test's
	cmd.Stdin = stdin
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// deploy creates a Deployment of pods with nothing but an idalloc container, and waits until all of them are Ready.
func deploy(ctx context.Context, t *testing.T, env *suite.Suite, namespace *suite.Namespace, replicas int32) {
	t.Helper()
	c := suite.Container("idalloc", env.Binary, "watch", "--dir", "/ids", "--http-address", "$(POD_IP):8089", "--partitions")
	c.Ports = []corev1.ContainerPort{{Name: "idalloc", ContainerPort: 8089}, {Name: "other", ContainerPort: 8090}}
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8089)}}}
	spec := suite.PodSpec(c)
	suite.Share(spec, "/ids")
	deployment := suite.Deployment(name, replicas, spec)
	deployment.Annotations = map[string]string{example.KeyCount: "12"}
	must(t, namespace.Create(ctx, deployment))
}

// logs returns what the pods said.
func logs(ctx context.Context, env *suite.Suite, namespace *suite.Namespace) string {
	pods, err := namespace.Pods(ctx, name)
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, pod := range pods {
		log, err := os.ReadFile(env.Node.Logs(namespace.Name, pod.Name, "idalloc"))
		fmt.Fprintf(&text, "-- %s (%v)\n%s\n", pod.Name, err, log)
	}
	return text.String()
}

// tamper removes the assignment, as a tool that knows nothing of idalloc does.
func tamper(ctx context.Context, t *testing.T, env *suite.Suite, namespace *suite.Namespace) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{assignment.Key: nil}}})
	must(t, err)
	_, err = env.Client.AppsV1().Deployments(namespace.Name).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "restore-tool"})
	must(t, err)
}

func testEachMetric(ctx context.Context, t *testing.T, p *server) {
	t.Helper()
	for _, d := range meter.Descriptions() {
		series := d.Name
		if d.Type == meter.TypeHistogram {
			series += "_bucket"
		}
		p.until(ctx, t, series+" is there", series, func(got []sample) bool { return len(got) > 0 })
	}
}

func testTheDashboard(ctx context.Context, t *testing.T, p *server, namespace string) {
	t.Helper()
	text, err := os.ReadFile(config(t, "grafana", "idalloc.json"))
	must(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	must(t, json.Unmarshal(text, &dashboard))
	fill := strings.NewReplacer("$namespace", namespace, "$workload", name, "$__rate_interval", "1m", "$__range", "10m")
	queries := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries++
			query := fill.Replace(target.Expr)
			if strings.Contains(query, "$") {
				t.Errorf("%s: a variable is left in %s", panel.Title, query)
				continue
			}
			p.until(ctx, t, panel.Title+" has an answer", query, func(got []sample) bool { return len(got) > 0 })
		}
	}
	if queries == 0 {
		t.Error("the dashboard has no queries")
	}
}

func testTheRules(ctx context.Context, t *testing.T, p *server) {
	t.Helper()
	type rule struct {
		Name      string `json:"name"`
		Health    string `json:"health"`
		LastError string `json:"lastError"`
	}
	var data struct {
		Groups []struct {
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		err := p.get(ctx, "/api/v1/rules", nil, &data)
		unknown := func(r rule) bool { return r.Health == "unknown" }
		return err == nil && len(data.Groups) == 1 && !slices.ContainsFunc(data.Groups[0].Rules, unknown), err
	})
	must(t, err)
	for _, r := range data.Groups[0].Rules {
		if r.Health != "ok" {
			t.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
		}
	}
}

func testWhatAPodSays(ctx context.Context, t *testing.T, namespace *suite.Namespace) {
	t.Helper()
	pods, err := namespace.ReadyPods(ctx, name)
	must(t, err)
	if len(pods) == 0 {
		t.Fatal("no pod is Ready")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pods[0].Status.PodIP+":8089/metrics", http.NoBody)
	must(t, err)
	response, err := http.DefaultClient.Do(r)
	must(t, err)
	defer response.Body.Close() //nolint:errcheck // a read-only body
	promtool(ctx, t, response.Body, "check", "metrics")
}
