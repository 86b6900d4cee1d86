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
	"github.com/idalloc/idalloc/autoscaler/internal/source/rabbitmq"
	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
	"github.com/idalloc/idalloc/test/envtest/example"
)

// patience is many times what a server needs.
const patience = 3 * time.Minute

// start runs a server until the test ends.
func start(t *testing.T, name string, args ...string) *example.Server {
	t.Helper()
	server, err := example.StartServer(t.Context(), name, args...)
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

// broker is a RabbitMQ with its management API.
type broker struct {
	t      *testing.T
	server *example.Server
	url    string
}

// startBroker starts one with these lines of configuration, and declares queues.
func startBroker(t *testing.T, config string, queues ...string) *broker {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rabbitmq.conf")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RABBITMQ_CONFIG", path)
	b := &broker{t: t, server: start(t, "rabbitmq", "management")}
	var err error
	if b.url, err = b.server.Said("management"); err != nil {
		t.Fatal(err)
	}
	for _, q := range queues {
		b.send(http.MethodPut, "/api/queues/%2F/"+q, `{"durable":true}`)
	}
	return b
}

func (b *broker) send(method, path, body string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		b.t.Fatalf("%s %s: %s", method, path, answer.Status)
	}
}

// publish sends a message that survives a restart.
func (b *broker) publish(queue string) {
	b.t.Helper()
	b.send(http.MethodPost, "/api/exchanges/%2F/amq.default/publish", `{"properties":{"delivery_mode":2},"routing_key":"`+queue+`","payload":"x","payload_encoding":"string"}`)
}

// source reads as a user who may manage, and no more.
func (b *broker) source() rabbitmq.Source {
	b.t.Helper()
	b.send(http.MethodPut, "/api/users/reader", `{"password":"secret","tags":"management"}`)
	b.send(http.MethodPut, "/api/permissions/%2F/reader", `{"configure":"","write":"","read":".*"}`)
	u, err := web.Parse(strings.Replace(b.url, "guest:guest", "reader:secret", 1))
	if err != nil {
		b.t.Fatal(err)
	}
	return rabbitmq.Source{Server: web.Server{URL: u}, VHost: "/", Prefix: "orders-P", Interval: time.Second, Now: time.Now}
}

// loads reads until something is known of three partitions, and returns their speeds.
func (b *broker) loads() []float64 {
	b.t.Helper()
	s, m, speeds := b.source(), &monitor.Monitor{Window: 3 * time.Second, Most: 1e6}, []float64(nil)
	NewWithT(b.t).Eventually(func(g Gomega) {
		r, err := s.Read(b.t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.Add(r)).To(Succeed())
		l := m.Loads(3)
		g.Expect(l.Missing.Empty()).To(BeTrue(), l.Missing.String())
		speeds = l.Speeds
	}).WithTimeout(patience).WithPolling(500 * time.Millisecond).Should(Succeed())
	return speeds
}

// A broker that was started again has counted nothing, and has the messages of before. One queue has another owner.
func TestQueuesToWhichNothingIsPublished(t *testing.T) {
	b := startBroker(t, "", "orders-P0", "orders-P1", "orders-P2", "orders-P-3")
	b.publish("orders-P1")
	b.loads()
	b.server.Kill()
	if err := b.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for p, speed := range b.loads() {
		if speed != 0 {
			t.Errorf("queue %d grows by %g/s", p, speed)
		}
	}
}

func TestABrokerThatDoesNotCountIsNoBrokerWithoutLoad(t *testing.T) {
	for config, want := range map[string]string{
		"management.rates_mode = none\n":                                           "management.rates_mode is none",
		"management.disable_stats = true\nmanagement.enable_queue_totals = true\n": "remove management.disable_stats",
	} {
		b := startBroker(t, config, "orders-P0", "orders-P1")
		b.publish("orders-P1")
		s := b.source()
		NewWithT(t).Eventually(func() error {
			_, err := s.Read(t.Context())
			return err
		}).WithTimeout(patience).WithPolling(500 * time.Millisecond).Should(MatchError(ContainSubstring(want)))
	}
}
