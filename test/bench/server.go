package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// Metrics of the API server, added up over their labels.
const (
	metricCPU    = "process_cpu_seconds_total"
	metricEvents = "apiserver_watch_events_sizes_sum" // of watch events, once for each watcher
)

// server is what the API server says of itself: everybody's traffic, that of the controllers included.
type server struct {
	cpu    float64 // seconds
	events float64 // bytes
}

// readServer reads the API server's metrics.
func readServer(ctx context.Context, client kubernetes.Interface) (s server, err error) {
	raw, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return s, fmt.Errorf("the API server's metrics: %w", err)
	}
	return parseServer(string(raw))
}

// parseServer reads the text form of metrics.
func parseServer(text string) (s server, err error) {
	sums := map[string]*float64{metricCPU: &s.cpu, metricEvents: &s.events}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, " ")
		if at := strings.IndexByte(line, '{'); at >= 0 && at < len(name) {
			name, rest = line[:at], line[strings.LastIndexByte(line, '}')+1:]
		}
		sum := sums[name]
		if sum == nil {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		if err != nil {
			return s, fmt.Errorf("the API server's metric %s: %w", name, err)
		}
		*sum += value
	}
	if s.cpu == 0 {
		return s, errors.New("the API server does not tell its CPU time")
	}
	return s, nil
}

// since returns what came after before.
func (s server) since(before server) server {
	return server{cpu: s.cpu - before.cpu, events: s.events - before.events}
}
