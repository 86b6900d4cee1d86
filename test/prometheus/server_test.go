package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// look is how often a wait looks again.
const look = 200 * time.Millisecond

// server is a Prometheus that scrapes the pods of a namespace.
type server struct{ url string }

// start starts one with the scrape job and the rules of config/prometheus, every second.
//
// Debian's Prometheus cannot ask Kubernetes for targets. So the test tells it what Kubernetes' discovery would, with the same labels.
func start(ctx context.Context, t *testing.T, namespace *suite.Namespace) *server {
	t.Helper()
	text, err := os.ReadFile(config(t, "prometheus", "scrape.yaml"))
	must(t, err)
	var c map[string]any
	must(t, yaml.Unmarshal(text, &c))
	jobs, _ := c["scrape_configs"].([]any)
	if len(jobs) != 1 {
		t.Fatalf("there are %d scrape jobs", len(jobs))
	}
	job, _ := jobs[0].(map[string]any)
	if want := []any{map[string]any{"role": "pod"}}; !reflect.DeepEqual(job["kubernetes_sd_configs"], want) {
		t.Fatalf("the job finds its targets by %v", job["kubernetes_sd_configs"])
	}
	delete(job, "kubernetes_sd_configs")
	targets := httptest.NewServer(discovery(namespace))
	t.Cleanup(targets.Close)
	job["http_sd_configs"] = []any{map[string]any{"url": targets.URL, "refresh_interval": "1s"}}
	c["global"] = map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
	c["rule_files"] = []string{config(t, "prometheus", "rules.yaml")}
	text, err = json.Marshal(c)
	must(t, err)
	path := filepath.Join(t.TempDir(), "prometheus.yaml")
	must(t, os.WriteFile(path, text, 0o600))
	t.Setenv("PROMETHEUS_CONFIG", path)
	s, err := example.StartServer(ctx, "prometheus")
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	p := &server{s.URL}
	must(t, wait.PollUntilContextCancel(ctx, look, true, p.ready))
	return p
}

// ready reports whether Prometheus has read its data and answers queries.
func (s *server) ready(ctx context.Context) (bool, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/-/ready", http.NoBody)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return false, err
	}
	return response.StatusCode == http.StatusOK, response.Body.Close()
}

// discovery answers with a target for each port of each container of a pod, as the role pod of Kubernetes' discovery does.
func discovery(namespace *suite.Namespace) http.Handler {
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pods, err := namespace.Pods(r.Context(), name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		all := []group{}
		for _, pod := range pods {
			for _, c := range pod.Spec.Containers {
				for _, port := range c.Ports {
					if pod.Status.PodIP == "" {
						continue
					}
					all = append(all, group{[]string{net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port.ContainerPort)))}, map[string]string{
						"__meta_kubernetes_namespace": pod.Namespace, "__meta_kubernetes_pod_name": pod.Name,
						"__meta_kubernetes_pod_phase":               string(pod.Status.Phase),
						"__meta_kubernetes_pod_container_port_name": port.Name,
					}})
				}
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all) // if it fails, Prometheus asks again
	})
}

// config returns the path of a file below the folder config.
func config(t *testing.T, elements ...string) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	must(t, err)
	return filepath.Join(append([]string{root, "config"}, elements...)...)
}

// get asks the HTTP API and decodes what it answers.
func (s *server) get(ctx context.Context, path string, parameters url.Values, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path+"?"+parameters.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // a read-only body
	answer := struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   any    `json:"data"`
	}{Data: into}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %s: %w", path, response.Status, err)
	}
	if answer.Status != "success" {
		return errors.New(answer.Error)
	}
	return nil
}

// sample is one result of a query.
type sample struct {
	Metric map[string]string `json:"metric"`
	// Value is a time and a text.
	Value [2]any `json:"value"`
}

// query returns what Prometheus answers now.
func (s *server) query(ctx context.Context, query string) ([]sample, error) {
	var data struct {
		ResultType string   `json:"resultType"`
		Result     []sample `json:"result"`
	}
	if err := s.get(ctx, "/api/v1/query", url.Values{"query": {query}}, &data); err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	return data.Result, nil
}

// becomes waits until a query has this one value.
func (s *server) becomes(ctx context.Context, t *testing.T, query, want string) {
	t.Helper()
	s.until(ctx, t, query+" is "+want, query, func(got []sample) bool { return len(got) == 1 && got[0].Value[1] == want })
}

// until waits until the answer to a query fits.
func (s *server) until(ctx context.Context, t *testing.T, what, query string, fits func([]sample) bool) {
	t.Helper()
	begin := time.Now()
	defer func() { t.Logf("%s: after %s", what, time.Since(begin).Round(time.Millisecond)) }()
	var got []sample
	err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		var err error
		got, err = s.query(ctx, query)
		return err == nil && fits(got), err
	})
	if err != nil {
		t.Fatalf("%s: %v; the last answer was %v", what, err, got)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
