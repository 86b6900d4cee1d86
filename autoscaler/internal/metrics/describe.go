package metrics

import "github.com/prometheus/client_golang/prometheus"

// Describe sends the descriptions of all metrics, including those without series so far.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) { m.registry.Describe(ch) }
