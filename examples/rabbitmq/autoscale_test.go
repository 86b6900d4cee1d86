package main

import (
	"context"
	"strconv"
	"testing"

	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
	"github.com/idalloc/idalloc/test/overlap"
)

const (
	// capacity is what the autoscaler is told that a pod works off, in events per second, and calm the load that two pods hold.
	capacity, calm = 100, 140
	// scaledPartitions are enough that none of them alone is too much for a pod.
	scaledPartitions = 12
)

// The autoscaler reads the broker's management API. No event may be lost or disordered while queues move.
func testScaledByLoad(t *testing.T, s *suite.Suite, broker *example.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := newWay(ctx, t, s, broker.URL, scaledPartitions, false, example.Spec{Name: example.Scaled, Annotations: map[string]string{example.KeyStrategy: "external"}})
	must(t, w.Scale(ctx, 1))
	management, err := broker.Said("management")
	must(t, err)
	autoscaler, err := example.StartAutoscaler(ctx, s, w.namespace, "--capacity="+strconv.Itoa(capacity),
		"--source=rabbitmq", "--source-url="+management, "--rabbitmq-prefix="+w.queues.Name+"-P")
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(autoscaler.Log())
		}
		must(t, autoscaler.Stop())
	})
	load := newLoad(ctx, t, w.producer, calm)
	most, err := w.Swing(ctx, load, scaledPartitions, calm, capacity)
	must(t, err)
	w.check(ctx, t, load)
	records, err := overlap.Read(w.probe)
	must(t, err)
	absence, moves := example.Absence(records)
	t.Logf("2 to %d to 2 pods, %d moves, %s without a consumer, all together", most, moves, absence)
}
