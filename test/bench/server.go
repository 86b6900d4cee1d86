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
	metricCPU      = "process_cpu_seconds_total"
	metricAnswers  = "apiserver_response_sizes_sum"          // of GET and LIST; no other verb is measured
	metricEvents   = "apiserver_watch_events_sizes_sum"      // of watch events, once for each watcher
	metricRequests = "apiserver_request_body_size_bytes_sum" // of POST, PUT, PATCH and DELETE
)

// server is what the API server says of itself: everybody's traffic, that of the controllers included.
type server struct {
	// cpu is in seconds, the rest in bytes.
	cpu, answers, events, requests float64
	// ownerEvents are those of events that went to watchers of Deployments.
	ownerEvents float64
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
	sums := map[string]*float64{metricCPU: &s.cpu, metricAnswers: &s.answers, metricEvents: &s.events, metricRequests: &s.requests}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, " ")
		labels := ""
		if at := strings.IndexByte(line, '{'); at >= 0 && at < len(name) {
			end := strings.LastIndexByte(line, '}')
			name, labels, rest = line[:at], line[at:end], line[end+1:]
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
		if name == metricEvents && strings.Contains(labels, `resource="deployments"`) {
			s.ownerEvents += value
		}
	}
	if s.cpu == 0 {
		return s, errors.New("the API server does not tell its CPU time")
	}
	return s, nil
}

// since returns what came after before.
func (s server) since(before server) server {
	return server{
		cpu: s.cpu - before.cpu, answers: s.answers - before.answers, events: s.events - before.events,
		requests: s.requests - before.requests, ownerEvents: s.ownerEvents - before.ownerEvents,
	}
}
