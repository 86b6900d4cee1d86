package sources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/autoscaler/internal/source/prometheus"
	"github.com/idalloc/idalloc/autoscaler/internal/source/rabbitmq"
	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
	"github.com/idalloc/idalloc/test/envtest/example"
)

// patience is many times what a server needs.
const patience = 3 * time.Minute

// speeds waits until the monitor has these speeds, within a tenth.
func speeds(t *testing.T, m *monitor.Monitor, s loop.Source, want []float64) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(func() error {
		r, err := s.Read(t.Context())
		if err != nil {
			return err
		}
		if err := m.Add(r); err != nil {
			return err
		}
		l := m.Loads(len(want))
		for p, v := range want {
			if l.Missing.Contains(p) || math.Abs(l.Speeds[p]-v) > v/10 {
				return fmt.Errorf("%v units/s, want %v; missing %s", l.Speeds, want, l.Missing)
			}
		}
		return nil
	}).WithTimeout(patience).WithPolling(500 * time.Millisecond).Should(Succeed())
}

func address(t *testing.T, text string) web.Server {
	t.Helper()
	u, err := web.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return web.Server{URL: u}
}

func TestAQueryToPrometheus(t *testing.T) {
	// Counters that grow by 10 and by 30 in a second, and one that stands still.
	begin := time.Now()
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for p, rate := range []float64{10, 30, 0} {
			_, _ = fmt.Fprintf(w, "published_total{queue=\"orders-%d\"} %g\n", p, rate*time.Since(begin).Seconds())
		}
	}))
	t.Cleanup(exporter.Close)
	config := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: test, metrics_path: /, static_configs: [{targets: [%s]}]}]\n", strings.TrimPrefix(exporter.URL, "http://"))
	path := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PROMETHEUS_CONFIG", path)
	server := start(t, "prometheus")
	s := prometheus.Source{Server: address(t, server.URL), Query: "sum by (queue) (rate(published_total[10s]))", Label: "queue", Prefix: "orders-", Now: time.Now}
	speeds(t, &monitor.Monitor{Window: time.Second, Most: 1e6}, s, []float64{10, 30, 0})
	for query, want := range map[string]string{"published_total[1m]": "no instant vector", "sum(published_total)": `no label "queue"`, "rate(": "400 Bad Request"} {
		s.Query = query
		if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
}

// start starts a server that a script of hack runs, until the test ends.
func start(t *testing.T, script string, args ...string) *example.Server {
	t.Helper()
	server, err := example.StartServer(t.Context(), script, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func TestTheQueuesOfARabbitMQ(t *testing.T) {
	management, err := start(t, "rabbitmq", "management").Said("management")
	if err != nil {
		t.Fatal(err)
	}
	s := rabbitmq.Source{Server: address(t, management), VHost: "/", Prefix: "orders-P", Interval: rabbitmq.Interval, Now: time.Now}
	if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "none of 0 queues") {
		t.Errorf("%v", err)
	}
	for p := range 3 {
		request(t, management, http.MethodPut, fmt.Sprintf("/api/queues/%%2F/orders-P%d", p), map[string]any{"durable": true})
	}
	g := NewWithT(t)
	published := map[int]float64{0: 0, 1: 0, 2: 0}
	for round := range 3 {
		for p := 1; p <= 2; p++ {
			for range p * 4 {
				request(t, management, http.MethodPost, "/api/exchanges/%2F/amq.default/publish",
					map[string]any{"properties": map[string]any{}, "routing_key": fmt.Sprintf("orders-P%d", p), "payload": "x", "payload_encoding": "string"})
				published[p]++
			}
		}
		// The statistics are brought up to date each second, each number by itself. Nothing consumes, so all that was published waits.
		g.Eventually(func(g Gomega) {
			r, err := s.Read(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.Totals).To(BeTrue())
			g.Expect(r.Values).To(Equal(published))
			g.Expect(r.Backlogs).To(Equal(published))
		}).WithTimeout(patience).Should(Succeed(), "round %d", round)
	}
	wrong := *s.Server.URL
	wrong.User = url.UserPassword("guest", "wrong")
	s.Server.URL = &wrong
	_, err = s.Read(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("401 Unauthorized")))
}

// request sends JSON to the management API.
func request(t *testing.T, management, method, path string, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, management+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s", method, path, answer.Status)
	}
}
