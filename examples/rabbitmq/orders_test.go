package main

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
	"github.com/idalloc/idalloc/test/overlap"
)

const (
	partitions = 8
	// perSecond is how many events each way gets.
	perSecond = 400
	// patience is many times what the test needs.
	patience = 10 * time.Minute
)

// One broker serves all tests, because it takes long to start.
func TestWithABroker(t *testing.T) {
	broker, err := example.StartServer(t.Context(), "rabbitmq", "management")
	must(t, err)
	t.Cleanup(func() { must(t, broker.Stop()) })
	t.Run("work ends", func(t *testing.T) { testTheEndOfWork(t, broker.URL) })
	t.Run("an event fails", func(t *testing.T) { testAnEventThatFails(t, broker.URL) })
	t.Run("a message is poisonous", func(t *testing.T) { testAPoisonousMessage(t, broker.URL) })
	t.Run("a queue is deleted", func(t *testing.T) { testAQueueIsDeleted(t, broker.URL) })
	s := newSuite(t.Context(), t)
	if !testing.Short() {
		t.Run("nothing is overtaken", func(t *testing.T) { testNothingIsOvertaken(t, s, broker) })
	}
	t.Run("the capacity of a pod", func(t *testing.T) { testTheCapacityOfAPod(t, s, broker) })
	t.Run("orders", func(t *testing.T) { testEveryEventIsProcessedInOrder(t, s, broker) })
}

// Both ways to consume go through the same scale events and failures at the same time, under load. With -short one consumer is killed, and
// nothing else.
func testEveryEventIsProcessedInOrder(t *testing.T, s *suite.Suite, broker *example.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ways := []*way{
		newWay(ctx, t, s, broker.URL, partitions, false, example.Spec{Name: "alone"}),
		newWay(ctx, t, s, broker.URL, partitions, true, example.Spec{Name: "single-active"}),
	}
	each := func(what string, do func(*testing.T, *way)) {
		t.Helper()
		begin := time.Now()
		for _, w := range ways {
			do(t, w)
		}
		for _, w := range ways {
			w.progress(ctx, t)
		}
		t.Logf("%s: %s", what, time.Since(begin).Round(time.Millisecond))
	}
	scale := func(n int) {
		t.Helper()
		for _, w := range ways {
			must(t, w.Scale(ctx, int32(n))) //nolint:gosec // a few
		}
		each("scaled to "+strconv.Itoa(n), func(t *testing.T, w *way) { t.Helper(); w.settled(ctx, t, n) })
	}
	for _, w := range ways {
		w.load = newLoad(ctx, t, w.producer, perSecond)
	}
	kill := func(ids ...string) {
		t.Helper()
		each("killed the consumers of "+strings.Join(ids, " and "), func(t *testing.T, w *way) {
			t.Helper()
			pods, err := w.Pods(ctx)
			must(t, err)
			for _, id := range ids {
				must(t, w.Signal(pods[id].Name, syscall.SIGKILL))
			}
		})
	}
	// The broker hears nothing of a consumer, takes back what it had sent ahead, and then hears of it again.
	silence := func(what string, begin func(*way, corev1.Pod) (undo func(context.Context) error, err error)) {
		t.Helper()
		undo, queues := map[*way]func(context.Context) error{}, map[*way]placement.Set{}
		for _, w := range ways {
			pods, err := w.Pods(ctx)
			must(t, err)
			owners, err := w.Owners(ctx)
			must(t, err)
			queues[w] = owners[0]
			undo[w], err = begin(w, pods["0"])
			must(t, err)
		}
		each(what, func(t *testing.T, w *way) {
			t.Helper()
			must(t, w.abandoned(ctx, queues[w]))
			must(t, undo[w](ctx))
		})
	}
	done := func() {
		scale(1)
		for _, w := range ways {
			t.Run(w.Name, func(t *testing.T) { w.check(ctx, t, w.load) })
		}
	}
	scale(2)
	if testing.Short() {
		kill("0")
		done()
		return
	}
	scale(5)
	kill("0", "3")
	each("deleted the pod of id 1 without grace", func(t *testing.T, w *way) {
		t.Helper()
		pods, err := w.Pods(ctx)
		must(t, err)
		must(t, w.Delete(ctx, pods["1"]))
	})
	silence("suspended the consumer of id 0", func(w *way, pod corev1.Pod) (func(context.Context) error, error) { return w.suspend(pod) })
	silence("cut the consumer of id 0 off from the broker", func(w *way, pod corev1.Pod) (func(context.Context) error, error) {
		return w.breakWire(wireCut, pod)
	})
	scale(3)
	begin := time.Now()
	broker.Kill()
	must(t, broker.Start(ctx))
	t.Logf("killed the broker and started it again: %s", time.Since(begin).Round(time.Millisecond))
	each("consuming again", func(*testing.T, *way) {})
	done()
}

// A consumer is suspended, and its pod is deleted by force: another pod has its queues before the broker knows. With single active consumers
// it gets nothing until the broker has put back what the first one had.
func testNothingIsOvertaken(t *testing.T, s *suite.Suite, broker *example.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := newWay(ctx, t, s, broker.URL, partitions, true, example.Spec{Name: "suspended", Annotations: map[string]string{example.KeyFailoverAfter: "2s"}})
	must(t, w.Scale(ctx, 2))
	w.load = newLoad(ctx, t, w.producer, perSecond)
	before, err := w.Settled(ctx, 2, partitions)
	must(t, err)
	w.progress(ctx, t)
	pods, err := w.Pods(ctx)
	must(t, err)
	_, err = w.suspend(pods["0"])
	must(t, err)
	s.Node.Pause() // the node does not hear that the pod is deleted
	defer s.Node.Resume()
	must(t, w.Room(ctx, 1))
	must(t, w.Delete(ctx, pods["0"]))
	_, err = w.Divided(ctx, 2, []int{1}, partitions)
	must(t, err)
	must(t, w.worked(ctx, overlap.Now(), 1))
	byQueue, err := w.byQueue()
	must(t, err)
	for p := range before[0].All() {
		if last := byQueue[p][len(byQueue[p])-1]; !strings.Contains(last.By, pods["1"].Name) {
			t.Errorf("queue %d is consumed by %s, want %s", p, last.By, pods["1"].Name)
		}
	}
	w.check(ctx, t, w.load)
}

// way is a workload with a namespace and queues of its own.
type way struct {
	*example.Workload

	namespace *suite.Namespace

	queues   Queues
	producer *Producer
	probe    string
	load     *example.Load
	url      string // of the broker

	partitions int
}

// newWay makes a workload without pods, whose consumers this test binary plays.
func newWay(ctx context.Context, tb testing.TB, s *suite.Suite, url string, count int, single bool, spec example.Spec) *way {
	tb.Helper()
	namespace, err := s.NewNamespace(ctx)
	must(tb, err)
	tb.Cleanup(func() { must(tb, namespace.Delete(context.WithoutCancel(ctx))) })
	w := &way{namespace: namespace, queues: Queues{Name: namespace.Name, SingleActive: single}, probe: tb.TempDir(), url: url, partitions: count}
	w.producer = &Producer{Queues: w.queues, Partitions: count, Log: slog.New(slog.DiscardHandler), connection: connection{url: url}}
	tb.Cleanup(w.producer.Close)
	self, err := os.Executable()
	must(tb, err)
	spec.Command = []string{self}
	env := map[string]string{
		roleEnv: roleConsumer, probeEnv: w.probe, wireEnv: "true",
		"RABBITMQ_URL": url, "QUEUES": w.queues.Name, "SINGLE_ACTIVE": strconv.FormatBool(single), "PARTITIONS": strconv.Itoa(count),
	}
	maps.Copy(env, spec.Env)
	annotations := map[string]string{example.KeyCount: strconv.Itoa(count)}
	maps.Copy(annotations, spec.Annotations)
	spec.Env, spec.Annotations = env, annotations
	w.Workload, err = example.NewWorkload(ctx, s, namespace, spec)
	must(tb, err)
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Log(w.Logs(context.WithoutCancel(ctx)))
		}
	})
	return w
}

func (w *way) settled(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	_, err := w.Settled(ctx, n, partitions)
	must(t, err)
}

// progress waits until events of every queue have been processed since it was called.
func (w *way) progress(ctx context.Context, tb testing.TB) {
	tb.Helper()
	const some = 5
	before, err := example.ReadProcessed(w.probe)
	must(tb, err)
	until(ctx, tb, w.Name+" processes events of every queue", func() (bool, error) {
		now, err := example.ReadProcessed(w.probe)
		if err != nil {
			return false, err
		}
		more := make([]int, w.partitions)
		for order, events := range now {
			more[Partition(order, w.partitions)] += len(events) - len(before[order])
		}
		return slices.Min(more) >= some, nil
	})
}

// check judges what the consumers wrote down.
func (w *way) check(ctx context.Context, t *testing.T, load *example.Load) {
	t.Helper()
	sent, err := load.Stop()
	must(t, err)
	example.Judge(ctx, t, w.probe, sent)
}

// newLoad sends events of many orders until the test ends.
func newLoad(ctx context.Context, tb testing.TB, p *Producer, perSecond float64) *example.Load {
	tb.Helper()
	l := example.StartLoad(ctx, perSecond, func(ctx context.Context, sent []example.Event) error {
		events := make([]Event, 0, len(sent))
		for _, e := range sent {
			events = append(events, Event(e))
		}
		return p.Send(ctx, events)
	})
	tb.Cleanup(func() { _, _ = l.Stop() }) // the judge of what was sent has stopped it before
	return l
}

func newSuite(ctx context.Context, tb testing.TB) *suite.Suite {
	tb.Helper()
	s, err := suite.Start(ctx, suite.Options{SkipBinary: true})
	must(tb, err)
	tb.Cleanup(func() { must(tb, s.Stop()) })
	return s
}

func until(ctx context.Context, tb testing.TB, what string, fits func() (bool, error)) {
	tb.Helper()
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) { return fits() })
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
