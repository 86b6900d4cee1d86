package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
	"github.com/idalloc/idalloc/test/overlap"
)

const (
	// pileUp is how many events wait in each queue: more than can be processed while one looks.
	pileUp = 1500
	// eventsPerSecond is the most that a slow pod processes.
	eventsPerSecond = 100
)

// Two pods work off what has piled up. What the autoscaler's program measures at the broker is what they themselves have written down.
func testTheCapacityOfAPod(t *testing.T, s *suite.Suite, broker *example.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	namespace, err := s.NewNamespace(ctx)
	must(t, err)
	t.Cleanup(func() { must(t, namespace.Delete(context.WithoutCancel(ctx))) })
	w := newWay(ctx, t, s, namespace, broker.URL, example.Scaled, false, map[string]string{example.KeyCount: strconv.Itoa(partitions)},
		map[string]string{slowEnv: strconv.Itoa(eventsPerSecond)})
	command, err := example.AutoscalerCommand(ctx, s, namespace, t.TempDir())
	must(t, err)
	must(t, w.producer.Send(ctx, evenly(pileUp)))
	must(t, w.Scale(ctx, 2))
	w.settled(ctx, t, 2)
	w.progress(ctx, t)

	management, err := broker.Said("management")
	must(t, err)
	begin := overlap.Now()
	printed, err := command("measure", "deployment/"+example.Scaled, "-n", namespace.Name, "--for=10s", "--period=1s",
		"--source=rabbitmq", "--source-url="+management, "--rabbitmq-prefix="+w.queues.Name+"-P", "--rabbitmq-interval=1s")
	end := overlap.Now()
	must(t, err)
	t.Logf("\n%s", printed)
	match := regexp.MustCompile(`--capacity=(\S+): the slowest of 2 busy pods`).FindStringSubmatch(printed)
	if match == nil {
		t.Fatalf("it names no capacity of two busy pods:\n%s", printed)
	}
	capacity, err := strconv.ParseFloat(match[1], 64)
	must(t, err)
	byOrder, err := example.ReadProcessed(w.probe)
	must(t, err)
	slowest := slowestPod(byOrder, begin, end)
	// The broker counts each second, so it may miss one of ten at each end.
	if math.Abs(capacity-slowest) > slowest/4 {
		t.Errorf("measured %.4g/s, and the slowest pod has written down %.4g/s", capacity, slowest)
	}
}

// evenly returns so many events for each queue, those of one order.
func evenly(n int) []Event {
	events := make([]Event, 0, n*partitions)
	for p := range partitions {
		order := ""
		for i := 0; order == "" || Partition(order, partitions) != p; i++ {
			order = fmt.Sprintf("order-%d-%d", p, i)
		}
		for number := range n {
			events = append(events, Event{Order: order, Number: number + 1})
		}
	}
	return events
}

// slowestPod returns how many events a second the slowest pod has processed in a time.
func slowestPod(byOrder map[string][]example.Processed, begin, end int64) float64 {
	counts := map[string]int{}
	for _, events := range byOrder {
		for _, e := range events {
			if e.End >= begin && e.End < end {
				counts[e.By]++
			}
		}
	}
	slowest := math.Inf(1)
	for _, n := range counts {
		slowest = min(slowest, float64(n)/(float64(end-begin)/1e9))
	}
	return slowest
}
