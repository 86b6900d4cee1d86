package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// events returns how many bytes of watch events the API server has sent, to all watchers, those of the controllers included.
func events(ctx context.Context, client kubernetes.Interface) (sum float64, err error) {
	raw, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("the API server's metrics: %w", err)
	}
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "apiserver_watch_events_sizes_sum") {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, '}')+1:]), 64)
		if err != nil {
			return 0, fmt.Errorf("the API server's metric %s: %w", line, err)
		}
		sum += value
	}
	return sum, nil
}
