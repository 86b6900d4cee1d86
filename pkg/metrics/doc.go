// Package metrics counts what happens to one instance and writes it in the format of Prometheus. It needs no client library. The idalloc container serves
// it at GET /metrics.
//
// A program that links idalloc passes one Metrics to its Options. A program with a Prometheus registry uses package
// metrics/collector, which makes a Metrics and registers it. A program without one calls WriteText in a handler of its own:
//
//	m := metrics.New()
//	http.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
//		w.Header().Set("Content-Type", metrics.ContentType)
//		_ = m.WriteText(w)
//	})
//	err := idalloc.Run(ctx, idalloc.Options{Metrics: m}, work)
//
// The names, the types and the labels of docs/metrics.md stay the same; more may be added. The number of time series of one instance is fixed, and no label
// contains the name of a pod. The observed values are consistent: id, count and token belong together.
package metrics
