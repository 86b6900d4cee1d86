package sources

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/autoscaler/internal/source/prometheus"
	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
	"github.com/idalloc/idalloc/test/envtest/example"
)

// patience is many times what a server needs.
const patience = 3 * time.Minute

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
	server, err := example.StartServer(t.Context(), "prometheus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	u, err := web.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := prometheus.Source{Server: web.Server{URL: u}, Query: "sum by (queue) (rate(published_total[10s]))", Label: "queue", Prefix: "orders-", Now: time.Now}
	// Within a tenth.
	m := &monitor.Monitor{Window: time.Second, Most: 1e6}
	NewWithT(t).Eventually(func() ([]float64, error) {
		r, err := s.Read(t.Context())
		if err == nil {
			err = m.Add(r)
		}
		return m.Loads(3).Speeds, err
	}).WithTimeout(patience).WithPolling(500 * time.Millisecond).Should(HaveExactElements(BeNumerically("~", 10, 1), BeNumerically("~", 30, 3), BeZero()))
	for query, want := range map[string]string{"published_total[1m]": "no instant vector", "sum(published_total)": `no label "queue"`, "rate(": "400 Bad Request"} {
		s.Query = query
		if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
}
