package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
	"github.com/idalloc/idalloc/test/measure"
	"github.com/idalloc/idalloc/test/overlap"
)

const (
	// faultQueues are divided among faultConsumers.
	faultQueues, faultConsumers = 15, 5
	// faultLoad is in events per second for each strategy.
	faultLoad = 200
	// benchFailover is how long queues of a pod that is gone rest before other pods get them.
	benchFailover = "5s"
	// lossy is how long packets are lost.
	lossy = 10 * time.Second
	// bounded is many times what a fault takes with all that follows.
	bounded = 3 * time.Minute
)

// fault is a kind of fault. minor hits two of five consumers, major three, and fixed always id 0.
type fault struct {
	name string
	hits int
	// gone takes their pods away, and there is no room for others until the fault ends.
	gone bool
	// signal goes to their processes.
	signal syscall.Signal
	// wire is what happens to their connections.
	wire string
}

func faults() []fault {
	return []fault{
		{name: "random loss", hits: faultConsumers, wire: wireLoss},
		{name: "crash", hits: 1, signal: syscall.SIGKILL},
		{name: "minor kill", hits: 2, gone: true},
		{name: "major kill", hits: 3, gone: true},
		{name: "fixed kill", gone: true},
		{name: "minor suspend", hits: 2, signal: syscall.SIGSTOP},
		{name: "major suspend", hits: 3, signal: syscall.SIGSTOP},
		{name: "fixed suspend", signal: syscall.SIGSTOP},
		{name: "cut off", wire: wireCut},
	}
}

// victims are drawn, the same ones for each strategy.
func (f fault) victims() []int {
	if f.hits == 0 {
		return []int{0}
	}
	drawn := rand.New(rand.NewPCG(uint64(f.hits), 1)).Perm(faultConsumers)[:f.hits] //nolint:gosec // the same ones each time
	slices.Sort(drawn)
	return drawn
}

// BenchmarkFaults breaks consumers in all ways, with all strategies side by side.
func BenchmarkFaults(b *testing.B) {
	broker, err := example.StartServer(b.Context(), "rabbitmq")
	must(b, err)
	b.Cleanup(func() { must(b, broker.Stop()) })
	s := newSuite(b.Context(), b)
	var table strings.Builder
	table.WriteString("\n| fault | strategy | worst balance degree | stickiness out, back | balanced after, out and back | longest rest of a queue | lost | twice | out of order |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, f := range faults() {
		b.Run(f.name, func(b *testing.B) {
			for b.Loop() {
				for _, row := range f.play(b, s, broker.URL) {
					table.WriteString(row)
				}
			}
		})
	}
	_, err = os.Stdout.WriteString(table.String())
	must(b, err)
}

// entry is a strategy with a workload.
type entry struct {
	*way

	strategy string
}

// play plays one fault with each strategy, and returns their rows.
func (f fault) play(b *testing.B, s *suite.Suite, url string) []string {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), bounded)
	defer cancel()
	strategies := []string{placement.NameSticky, placement.NameEven, placement.NameRange, placement.NamePrimary}
	all := make([]*entry, 0, len(strategies))
	for _, strategy := range strategies {
		annotations := map[string]string{example.KeyStrategy: strategy, example.KeyFailoverAfter: benchFailover}
		e := &entry{newWay(b.Context(), b, s, url, faultQueues, false, example.Spec{Name: "bench", Annotations: annotations}), strategy}
		must(b, e.Scale(ctx, faultConsumers))
		e.load = newLoad(ctx, b, e.producer, faultLoad)
		all = append(all, e)
	}
	rows, errs := make([]string, len(all)), make([]error, len(all))
	var playing sync.WaitGroup
	for i, e := range all {
		playing.Go(func() { rows[i], errs[i] = e.suffers(ctx, f) })
	}
	playing.Wait()
	must(b, errors.Join(errs...))
	for _, e := range all {
		must(b, e.Scale(ctx, 0))
	}
	return rows
}

// suffers plays a fault, and returns a row.
func (e *entry) suffers(ctx context.Context, f fault) (string, error) {
	before, err := e.Settled(ctx, faultConsumers, faultQueues)
	if err == nil {
		err = e.worked(ctx, overlap.Now(), faultConsumers)
	}
	if err != nil {
		return "", err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	worst := e.worst(watching)
	begin := overlap.Now()
	out, undo, err := e.broken(ctx, f, before)
	if err != nil {
		return "", err
	}
	during, err := e.Owners(ctx)
	if err != nil {
		return "", err
	}
	end := time.Now()
	if err := undo(ctx); err != nil {
		return "", err
	}
	after, err := e.Settled(ctx, faultConsumers, faultQueues)
	if err == nil {
		err = e.worked(ctx, overlap.Now(), faultConsumers)
	}
	if err != nil {
		return "", err
	}
	back, rest, finish := time.Since(end), time.Duration(0), overlap.Now()
	stop()
	lost, twice, wrong, err := e.judged(ctx)
	if err != nil {
		return "", err
	}
	byQueue, err := e.byQueue()
	for _, events := range byQueue {
		for i := 1; i < len(events); i++ {
			if events[i].Begin > begin && events[i-1].End < finish {
				rest = max(rest, time.Duration(events[i].Begin-events[i-1].End))
			}
		}
	}
	return fmt.Sprintf("| %s | %s | %.2f | %.2f, %.2f | %s, %.1f s | %.1f s | %d | %d | %d |\n", f.name, e.strategy, <-worst,
		measure.StickinessOfAll(before, during, faultQueues), measure.StickinessOfAll(during, after, faultQueues), out, back.Seconds(), rest.Seconds(), lost, twice, wrong), err
}

// broken begins a fault, and returns when it has had its effect: the others own all queues of pods that are gone, or the broker has given
// up the connections. out says how long the others took.
func (e *entry) broken(ctx context.Context, f fault, owners placement.Owners) (out string, undo func(context.Context) error, err error) {
	pods, err := e.Pods(ctx)
	if err != nil {
		return "", nil, err
	}
	hit := make(map[int]corev1.Pod, faultConsumers)
	for _, id := range f.victims() {
		hit[id] = pods[strconv.Itoa(id)]
	}
	begin := time.Now()
	undo = func(context.Context) error { return nil }
	switch {
	case f.gone:
		err := e.Room(ctx, faultConsumers-len(hit))
		for _, pod := range hit {
			err = errors.Join(err, e.Delete(ctx, pod))
		}
		left := slices.DeleteFunc(owners.IDs(), func(id int) bool { _, gone := hit[id]; return gone })
		if err == nil {
			_, err = e.Divided(ctx, faultConsumers, left, faultQueues)
		}
		if err == nil {
			err = e.worked(ctx, overlap.Now(), len(left))
		}
		return fmt.Sprintf("%.1f", time.Since(begin).Seconds()), func(ctx context.Context) error { return e.Room(ctx, faultConsumers) }, err
	case f.signal == syscall.SIGKILL:
		for _, pod := range hit {
			err = errors.Join(err, e.Signal(pod.Name, f.signal))
		}
		return "–", undo, err
	case f.signal == syscall.SIGSTOP:
		undo, err = e.suspend(slices.Collect(maps.Values(hit))...)
	default:
		undo, err = e.breakWire(f.wire, slices.Collect(maps.Values(hit))...)
	}
	if err == nil && f.wire == wireLoss {
		pause(ctx, lossy)
		return "–", undo, nil
	}
	for id := range hit {
		if err == nil {
			err = e.abandoned(ctx, owners[id])
		}
	}
	return "–", undo, err
}

// suspend suspends the programs of pods.
func (w *way) suspend(pods ...corev1.Pod) (undo func(context.Context) error, err error) {
	signal := func(s syscall.Signal) (err error) {
		for _, pod := range pods {
			err = errors.Join(err, w.Signal(pod.Name, s))
		}
		return err
	}
	return func(context.Context) error { return signal(syscall.SIGCONT) }, signal(syscall.SIGSTOP)
}

// breakWire has the connections of pods fail in this way.
func (w *way) breakWire(how string, pods ...corev1.Pod) (undo func(context.Context) error, err error) {
	for _, pod := range pods {
		err = errors.Join(err, os.WriteFile(filepath.Join(w.probe, pod.Name+wireSuffix), []byte(how), 0o600))
	}
	return func(context.Context) (err error) {
		for _, pod := range pods {
			err = errors.Join(err, os.Remove(filepath.Join(w.probe, pod.Name+wireSuffix)))
		}
		return err
	}, err
}

// abandoned waits until these queues have no consumer for the broker: heartbeats are missing, and it has put back what it had sent ahead.
func (w *way) abandoned(ctx context.Context, queues placement.Set) error {
	c := connection{url: w.url}
	defer c.close()
	ch, err := c.channel()
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		for p := range queues.All() {
			q, err := ch.QueueDeclarePassive(w.queues.Queue(p), true, false, false, false, nil)
			if err != nil || q.Consumers > 0 {
				return false, err
			}
		}
		return true, nil
	})
}

// byQueue returns the events that were processed, by queue, each queue's by time.
func (w *way) byQueue() (map[int][]example.Processed, error) {
	byOrder, err := example.ReadProcessed(w.probe)
	byQueue := map[int][]example.Processed{}
	for order, events := range byOrder {
		queue := Partition(order, w.partitions)
		byQueue[queue] = append(byQueue[queue], events...)
	}
	for _, events := range byQueue {
		slices.SortFunc(events, func(a, b example.Processed) int { return cmp.Compare(a.Begin, b.Begin) })
	}
	return byQueue, err
}

// worked waits until an event of every queue was begun after a time of overlap.Now, by so many consumers, 0 for any number.
func (w *way) worked(ctx context.Context, since int64, consumers int) error {
	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) {
		byQueue, err := w.byQueue()
		working, by := 0, map[string]struct{}{}
		for _, events := range byQueue {
			if last := events[len(events)-1]; last.Begin > since {
				working++
				by[last.By] = struct{}{}
			}
		}
		return working == w.partitions && (consumers == 0 || len(by) == consumers), err
	})
}

// worst returns the worst balance degree of the owners until ctx ends.
func (e *entry) worst(ctx context.Context) <-chan float64 {
	most := make(chan float64, 1)
	go func() {
		worst := 0.0
		_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			if owners, err := e.Owners(ctx); err == nil {
				worst = max(worst, measure.BalanceDegree(owners))
			}
			return false, nil
		})
		most <- worst
	}()
	return most
}

// judged returns how many events were lost, processed more than once, and processed out of order.
func (w *way) judged(ctx context.Context) (lost, twice, wrong int, err error) {
	sent, err := w.load.Stop()
	if err != nil {
		return 0, 0, 0, err
	}
	limited, cancel := context.WithTimeout(ctx, bounded/3)
	defer cancel()
	var byOrder map[string][]example.Processed
	err = wait.PollUntilContextCancel(limited, 200*time.Millisecond, true, func(context.Context) (_ bool, err error) {
		byOrder, err = example.ReadProcessed(w.probe)
		lost = example.Missing(sent, byOrder)
		return lost == 0, err
	})
	if limited.Err() != nil {
		err = nil // they are lost
	}
	sentences, twice := example.Disorder(byOrder)
	return lost, twice, len(sentences), err
}
