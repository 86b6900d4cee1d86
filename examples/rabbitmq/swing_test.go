//go:build e2e

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/overlap"
)

const (
	// fewest is how many pods hold the calm load, and busy how many the fourfold one needs at least.
	fewest = (calm + capacity - 1) / capacity
	busy   = (4*calm + capacity - 1) / capacity
	// clusterPartitions are small beside what a pod works off.
	clusterPartitions = 32
	keyTarget         = "idalloc.dev/partition-target"
)

var unhurried = flag.Bool("unhurried", false, "swing the load three times, at a pace nearer to that of a real workload, and break something each time but the first") //nolint:gochecknoglobals // a flag

// pace is how fast both kinds of scaling act.
type pace struct {
	// period is how often they look, window the time over which they measure. every, afterUp and afterDown are the autoscaler's; what
	// counts pods waits for afterDown, too, before it lowers their number.
	period, window, every, afterUp, afterDown time.Duration
}

func (p pace) flags() []string {
	return []string{"--period=" + p.period.String(), "--window=" + p.window.String(), "--every=" + p.every.String(),
		"--after-up=" + p.afterUp.String(), "--after-down=" + p.afterDown.String()}
}

// rival is a workload under load, and what it did.
type rival struct {
	*way

	namespace string
	history   *history
	// load is empty until the test sends.
	load atomic.Pointer[example.Load]
	// swings has a row of the table for each time that the load went up and down.
	swings []string
}

// On a real cluster two workloads get the same load: one is scaled by idalloc-autoscaler, the other as an HPA would, to the total load by
// what one pod works off, and divides its partitions by "sticky".
func TestOnACluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	at := pace{period: 500 * time.Millisecond, window: 15 * time.Second, every: 2 * time.Second, afterUp: 5 * time.Second, afterDown: 5 * time.Second}
	swings := []string{"undisturbed"}
	if *unhurried {
		at = pace{period: 2 * time.Second, window: 30 * time.Second, every: 10 * time.Second, afterUp: 30 * time.Second, afterDown: time.Minute}
		swings = []string{"undisturbed", leaderKilled, statisticsGone}
	}
	c := newCluster(ctx, t)
	broker, err := example.StartServer(ctx, "rabbitmq", "management", c.address)
	must(t, err)
	t.Cleanup(func() { must(t, broker.Stop()) })

	scaled := c.start(ctx, t, broker, "external", at)
	counted := c.start(ctx, t, broker, "sticky", at)
	counting, stop := context.WithCancel(ctx)
	counter := startCounter(counting, c, counted, at)
	t.Cleanup(func() {
		stop()
		must(t, <-counter)
	})
	both := []*rival{scaled, counted}
	for _, r := range both {
		r.load.Store(newLoad(ctx, t, r.producer, calm))
	}
	awaitBoth(ctx, t, both, fewest)
	for _, swing := range swings {
		swingOnce(ctx, t, c, broker, swing, both)
	}
	for _, r := range both {
		t.Run(r.queues.Name, func(t *testing.T) { r.check(ctx, t, r.load.Load()) })
	}
	t.Logf("\n%s%s%s", header, strings.Join(scaled.swings, ""), strings.Join(counted.swings, ""))
}

// start applies autoscaler/config with queues of its own. Without the strategy external the autoscaler has no pods.
func (c *cluster) start(ctx context.Context, t *testing.T, broker *example.Server, strategy string, at pace) *rival {
	t.Helper()
	w := &way{queues: Queues{Name: strategy}, probe: t.TempDir(), partitions: clusterPartitions}
	must(t, os.Chmod(w.probe, 0o777)) //nolint:gosec // the containers run as another user
	w.producer = &Producer{Queues: w.queues, Partitions: w.partitions, Log: slog.New(slog.DiscardHandler), connection: connection{url: broker.URL}}
	t.Cleanup(w.producer.Close)
	r := &rival{way: w, namespace: c.namespace(ctx, t)}
	t.Cleanup(func() { c.says(ctx, t, r.namespace) })
	r.history = c.watch(ctx, t, r.namespace, example.Scaled)
	annotations := map[string]string{example.KeyCount: strconv.Itoa(w.partitions), example.KeyStrategy: strategy}
	c.apply(ctx, t, r.namespace, "autoscaler/config", func(d *appsv1.Deployment) {
		switch {
		case d.Name == example.Scaled:
			c.consumes(d, w, broker.URL, annotations)
		case strategy == "external":
			must(t, c.scales(d, w, broker, at))
		default:
			d.Spec.Replicas = new(int32(0))
		}
	})
	return r
}

// swingOnce has the load of both grow fourfold and fall back, and adds a row to the table of each.
func swingOnce(ctx context.Context, t *testing.T, c *cluster, broker *example.Server, what string, both []*rival) {
	t.Helper()
	begin, since := time.Now(), overlap.Now()
	for _, r := range both {
		r.load.Load().Set(4 * calm)
	}
	scaled := both[0]
	switch what {
	case leaderKilled:
		killTheLeader(ctx, t, c, scaled)
	case statisticsGone:
		restartTheStatistics(ctx, t, broker)
	}
	grown := awaitBoth(ctx, t, both, busy)
	turn := time.Now()
	for _, r := range both {
		r.load.Load().Set(calm)
	}
	shrunk := awaitBoth(ctx, t, both, fewest)
	for i, r := range both {
		records, err := overlap.Read(r.probe)
		must(t, err)
		cost := r.history.between(begin, time.Now())
		r.swings = append(r.swings, fmt.Sprintf("| %s | %s | %d | %d | %s | %s | %s | %.0f |\n", r.queues.Name, what, cost.most, cost.scalings,
			grown[i].Sub(begin).Round(time.Second), shrunk[i].Sub(turn).Round(time.Second), summary(records, since), cost.hours.Seconds()))
	}
}

const header = `| strategy | swing | most pods | scalings | up after | down after | moves | partition-seconds without a consumer | longest | pod-seconds |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
`

// summary returns the moves since a time, for how long partitions had no consumer, and the longest such time.
func summary(records []overlap.Record, since int64) string {
	moves, total, longest := 0, time.Duration(0), time.Duration(0)
	for _, g := range example.Gaps(records) {
		if g.To < since {
			continue
		}
		if g.Moved {
			moves++
		}
		total += time.Duration(g.To - g.From)
		longest = max(longest, time.Duration(g.To-g.From))
	}
	return fmt.Sprintf("%d | %.1f s | %.2f s", moves, total.Seconds(), longest.Seconds())
}

// awaitBoth waits until as many pods as the load needs own all partitions, no others are there, and that many pods consume all queues. It
// returns when the Deployments were so. The owners are named before the work of the former ones has stopped.
func awaitBoth(ctx context.Context, t *testing.T, both []*rival, pods int) []time.Time {
	t.Helper()
	when, owners, errs := make([]time.Time, len(both)), make([]int, len(both)), make([]error, len(both))
	var done sync.WaitGroup
	for i, r := range both {
		done.Go(func() {
			s, err := r.history.await(ctx, fmt.Sprintf("%s: waiting for %d pods", r.queues.Name, pods), func(s state) bool {
				enough := s.owners == pods || pods == busy && s.owners > pods // packing may take one more
				return s.owned == r.partitions && enough && s.replicas == s.owners && s.pods == s.replicas
			})
			when[i], owners[i], errs[i] = s.at, s.owners, err
		})
	}
	done.Wait()
	must(t, errors.Join(errs...))
	for i, r := range both {
		until(ctx, t, r.queues.Name+" consumes every queue", func() (bool, error) {
			records, err := overlap.Read(r.probe)
			queues, pods := consumed(records)
			return queues == r.partitions && pods == owners[i], err
		})
	}
	return when
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

// says has a test that fails, or one that is unhurried, show what the pods said.
func (c *cluster) says(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	if !t.Failed() && !*unhurried {
		return
	}
	ctx = context.WithoutCancel(ctx)
	commands := [][]string{{"logs", "-l", "app.kubernetes.io/name=idalloc-autoscaler", "--prefix", "--tail=-1"}}
	if t.Failed() {
		commands = append(commands, []string{"logs", "-l", "app.kubernetes.io/name=worker", "--prefix", "--tail=30", "--max-log-requests=30"},
			[]string{"get", "pods", "-o", "wide"}, []string{"get", "deployments", "-o", "yaml"}, []string{"get", "events"})
	}
	for _, args := range commands {
		out, err := kubectl(ctx, "", append([]string{"-n", namespace}, args...)...)
		t.Logf("$ kubectl %v\n%s\n%v", args, out, err)
	}
}
