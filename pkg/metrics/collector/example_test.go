package collector_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/metrics/collector"
)

// A program with a registry of Prometheus' client library registers the metrics of its instance.
func ExampleRegister() {
	registry := prometheus.NewRegistry()
	m, err := collector.Register(registry)
	if err != nil {
		fmt.Println(err)
		return
	}
	options := idalloc.Options{Metrics: m} // for idalloc.Run
	_, again := collector.Register(registry)
	fmt.Println(options.Metrics != nil, again != nil)
	// Output: true true
}
