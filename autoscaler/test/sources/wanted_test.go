package sources

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/metrics"
	"github.com/idalloc/idalloc/autoscaler/internal/source/prometheus"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Three autoscalers are scraped by one Prometheus: that of the example, that of the same name in another namespace, and another one.
func TestTheQueryOfTheScaledObjectHasTheNumberOfItsWorkloadAlone(t *testing.T) {
	program := need(t, "prometheus")
	wanted := map[store.Ref]int{
		{Kind: store.Deployment, Namespace: "default", Name: "worker"}: 3,
		{Kind: store.Deployment, Namespace: "other", Name: "worker"}:   9,
		{Kind: store.Deployment, Namespace: "default", Name: "bigger"}: 7,
	}
	targets := make([]string, 0, len(wanted))
	for ref, pods := range wanted {
		m := metrics.New(decide.Settings{Capacity: 100}, ref)
		m.Leads(true)
		m.Observe(loop.Report{Now: time.Now(), Decision: decide.Decision{Phase: decide.Idle, Wanted: pods}})
		server := httptest.NewServer(m.Handler())
		t.Cleanup(server.Close)
		targets = append(targets, strings.TrimPrefix(server.URL, "http://"))
	}
	var object struct {
		Spec struct {
			Triggers []struct {
				Metadata struct {
					Query string `json:"query"`
				} `json:"metadata"`
			} `json:"triggers"`
		} `json:"spec"`
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "scaledobject.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &object); err != nil || len(object.Spec.Triggers) != 1 {
		t.Fatalf("%+v, %v", object, err)
	}
	// The source reads a partition's number from a label, so the count of all workloads tells when each is scraped.
	server := startPrometheus(t, program, targets...)
	query := func(text string) (map[int]float64, error) {
		r, err := prometheus.Source{Server: server, Query: `label_replace(` + text + `, "partition", "0", "", "")`, Label: "partition", Now: time.Now}.Read(t.Context())
		return r.Values, err
	}
	g := NewWithT(t)
	g.Eventually(func() (map[int]float64, error) { return query("sum(idalloc_autoscaler_pods_wanted)") }).
		WithTimeout(patience).WithPolling(200 * time.Millisecond).Should(Equal(map[int]float64{0: 19}))
	got, err := query(object.Spec.Triggers[0].Metadata.Query)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(map[int]float64{0: 3}))
}
