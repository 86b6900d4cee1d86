//go:build e2e

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/overlap"
)

const (
	// capacity is what the autoscaler is told that a pod works off, in events per second, and calm the load that two pods hold.
	capacity, calm = 100, 140
	// fewest is how many pods hold the calm load, and busy how many the fourfold one needs at least.
	fewest = (calm + capacity - 1) / capacity
	busy   = (4*calm + capacity - 1) / capacity
	// clusterPartitions are small beside what a pod works off.
	clusterPartitions = 32
)

// On a real cluster idalloc-autoscaler scales a workload whose load grows fourfold and falls back.
func TestOnACluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	c := newCluster(ctx, t)
	broker, err := example.StartServer(ctx, "rabbitmq", "management", c.address)
	must(t, err)
	t.Cleanup(func() { must(t, broker.Stop()) })
	w, namespace := c.start(ctx, t, broker)
	load := newLoad(ctx, t, w.producer, calm)
	c.await(ctx, t, w, namespace, fewest)
	load.Set(4 * calm)
	c.await(ctx, t, w, namespace, busy)
	load.Set(calm)
	c.await(ctx, t, w, namespace, fewest)
	w.check(ctx, t, load)
}

// start applies autoscaler/config with queues of its own in a namespace of its own.
func (c *cluster) start(ctx context.Context, t *testing.T, broker *example.Server) (w *way, namespace string) {
	t.Helper()
	w = &way{queues: Queues{Name: "scaled"}, probe: t.TempDir(), partitions: clusterPartitions}
	must(t, os.Chmod(w.probe, 0o777)) //nolint:gosec // the containers run as another user
	w.producer = &Producer{Queues: w.queues, Partitions: w.partitions, Log: slog.New(slog.DiscardHandler), connection: connection{url: broker.URL}}
	t.Cleanup(w.producer.Close)
	namespace = c.namespace(ctx, t)
	t.Cleanup(func() { c.says(ctx, t, namespace) })
	annotations := map[string]string{example.KeyCount: strconv.Itoa(w.partitions), example.KeyStrategy: "external"}
	c.apply(ctx, t, namespace, "autoscaler/config", func(d *appsv1.Deployment) {
		if d.Name == example.Scaled {
			c.consumes(d, w, broker.URL, annotations)
		} else {
			must(t, c.scales(d, w, broker))
		}
	})
	return w, namespace
}

// await waits until as many pods as the load needs own all partitions, no others are there, and that many pods consume all queues. The owners
// are named before the work of the former ones has stopped.
func (c *cluster) await(ctx context.Context, t *testing.T, w *way, namespace string, pods int) {
	t.Helper()
	until(ctx, t, fmt.Sprintf("%d pods consume every queue", pods), func() (bool, error) {
		d, err := c.AppsV1().Deployments(namespace).Get(ctx, example.Scaled, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		owners, err := example.OwnersOf(d)
		if err != nil {
			return false, err
		}
		owned, n := 0, len(owners)
		for _, set := range owners {
			owned += set.Len()
		}
		enough := len(owners) == pods || pods == busy && len(owners) > pods // packing may take one more
		known := d.Status.ObservedGeneration == d.Generation
		if owned != w.partitions || !enough || !known || int(*d.Spec.Replicas) != n || int(d.Status.Replicas) != n || int(d.Status.ReadyReplicas) != n {
			return false, nil
		}
		records, err := overlap.Read(w.probe)
		queues, workers := consumed(records)
		return queues == w.partitions && workers == len(owners), err
	})
}

// consumed returns how many partitions are worked on, and by how many pods.
func consumed(records []overlap.Record) (queues, workers int) {
	last := map[string]overlap.Record{}
	for _, r := range records {
		last[r.Holder()] = r
	}
	partitions, pods := map[int]struct{}{}, map[string]struct{}{}
	for _, r := range last {
		if r.ID == overlap.None {
			continue
		}
		partitions[r.ID] = struct{}{}
		pods[strings.TrimSuffix(r.Pod, fmt.Sprintf(".%d", r.ID))] = struct{}{}
	}
	return len(partitions), len(pods)
}

// says has a test that fails show what the pods said.
func (c *cluster) says(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, args := range [][]string{
		{"logs", "-l", "app.kubernetes.io/name=idalloc-autoscaler", "--prefix", "--tail=-1"},
		{"logs", "-l", "app.kubernetes.io/name=worker", "--prefix", "--tail=30", "--max-log-requests=30"},
		{"get", "pods", "-o", "wide"}, {"get", "deployments", "-o", "yaml"}, {"get", "events"},
	} {
		out, err := kubectl(context.WithoutCancel(ctx), "", append([]string{"-n", namespace}, args...)...)
		t.Logf("$ kubectl %v\n%s\n%v", args, out, err)
	}
}
