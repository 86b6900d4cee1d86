package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"
	"time"

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
	w := newWay(ctx, t, s, broker.URL, partitions, false, example.Spec{Name: example.Scaled, Env: map[string]string{slowEnv: strconv.Itoa(eventsPerSecond)}})
	command, err := example.AutoscalerCommand(ctx, s, w.namespace, t.TempDir())
	must(t, err)
	must(t, w.producer.Send(ctx, evenly(pileUp)))
	must(t, w.Scale(ctx, 2))
	w.settled(ctx, t, 2)
	w.progress(ctx, t)

	management, err := broker.Said("management")
	must(t, err)
	begin := overlap.Now()
	printed, err := command("measure", "deployment/"+example.Scaled, "-n", w.namespace.Name, "--for=30s", "--period=1s",
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
	lowest, highest := rates(byOrder, begin, end)
	t.Logf("the pods wrote down %.4g/s to %.4g/s in ten seconds", lowest, highest)
	// The broker counts late where it has much to do.
	if capacity < lowest/2 || capacity > 2*highest {
		t.Errorf("measured %.4g/s, and the pods wrote down %.4g/s to %.4g/s", capacity, lowest, highest)
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

// rates returns the fewest and the most events a second that a pod has processed in any ten seconds between two times. How fast a machine is
// changes, and the program measures at some time between the two.
func rates(byOrder map[string][]example.Processed, begin, end int64) (lowest, highest float64) {
	const second, long = int64(time.Second), int64(10)
	ends := map[string][]int64{}
	for _, events := range byOrder {
		for _, e := range events {
			ends[e.By] = append(ends[e.By], e.End)
		}
	}
	lowest = math.Inf(1)
	for from := begin; from+long*second <= end; from += second {
		for _, all := range ends {
			n := 0
			for _, at := range all {
				if at >= from && at < from+long*second {
					n++
				}
			}
			rate := float64(n) / float64(long)
			lowest, highest = min(lowest, rate), max(highest, rate)
		}
	}
	return lowest, highest
}
