// Package collector registers the metrics of a program that links idalloc with Prometheus' client library:
//
//	m, err := collector.Register(prometheus.DefaultRegisterer)
//	if err != nil {
//		return err
//	}
//	return idalloc.Run(ctx, idalloc.Options{Metrics: m}, work)
//
// It is a separate package, so that only programs that use the client library link it. A process with several instances registers each with its own labels:
// see prometheus.WrapRegistererWith.
package collector

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idalloc/idalloc/internal/meter"
	"github.com/idalloc/idalloc/pkg/metrics"
)

// Register makes a Metrics and registers it. Pass the Metrics to the options of one instance. The error is the registerer's: it already has metrics of
// these names.
func Register(r prometheus.Registerer) (*metrics.Metrics, error) {
	m := metrics.New()
	if err := r.Register(New(m)); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return m, nil
}

// New returns a collector of the metrics.
func New(m *metrics.Metrics) prometheus.Collector {
	c := &collector{metrics: (*meter.Metrics)(m), descs: map[string]*prometheus.Desc{}}
	for _, d := range meter.Descriptions() {
		c.descs[d.Name] = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
	}
	return c
}

type collector struct {
	metrics *meter.Metrics
	descs   map[string]*prometheus.Desc // by name
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, f := range c.metrics.Families() {
		for _, s := range f.Samples {
			to <- c.metric(f, s)
		}
	}
}

func (c *collector) metric(f meter.Family, s meter.Sample) prometheus.Metric {
	desc := c.descs[f.Name]
	switch h := s.Histogram; {
	case h != nil:
		buckets, below := make(map[float64]uint64, len(h.Bounds)), uint64(0)
		for i, bound := range h.Bounds {
			below += h.Counts[i]
			buckets[bound] = below
		}
		return prometheus.MustNewConstHistogram(desc, h.Count, h.Sum, buckets, s.Values...)
	case f.Type == meter.TypeCounter:
		return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, s.Value, s.Values...)
	}
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, s.Value, s.Values...)
}
