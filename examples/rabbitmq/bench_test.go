package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
	"github.com/idalloc/idalloc/test/overlap"
)

//nolint:gochecknoglobals // flags of the test binary
var messages = flag.Int("messages", 1_000_000, "how many messages BenchmarkDrain sends")

const (
	// benchQueues and benchConsumers are those of the comparison of strategies by the RocketMQ community.
	benchQueues, benchConsumers = 4, 4
	// roleSubscriber subscribes to all queues, and has the broker choose. It needs no idalloc.
	roleSubscriber = "subscriber"
	// roleOrdinal computes its queues from its ordinal and the number of replicas, as a StatefulSet without idalloc would.
	roleOrdinal = "ordinal"
)

// contender is a way to have each queue consumed by one consumer.
type contender struct {
	name, role string
	strategy   string // of partitions
}

func contenders() []contender {
	return []contender{
		{"sticky", roleConsumer, placement.NameSticky},
		{"range", roleConsumer, placement.NameRange},
		{"single-active consumers alone", roleSubscriber, ""},
	}
}

// BenchmarkDrain measures how long four consumers take to empty four queues, while consumers leave and come.
func BenchmarkDrain(b *testing.B) {
	bench := newBench(b)
	for _, c := range contenders() {
		for rebalancings := range 3 {
			b.Run(fmt.Sprintf("%s/%d rebalancings", c.name, rebalancings), func(b *testing.B) {
				for b.Loop() {
					bench.drain(b, c, rebalancings)
				}
			})
		}
	}
}

// BenchmarkMove measures how long a queue had no consumer when it went to another one, and how often it had two.
func BenchmarkMove(b *testing.B) {
	bench := newBench(b)
	for _, c := range append(contenders(), contender{"StatefulSet arithmetic", roleOrdinal, ""}) {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				bench.move(b, c)
			}
		})
	}
}

// bench is what the benchmarks share.
type bench struct {
	broker *example.Server
	suite  *suite.Suite
	runs   int
}

func newBench(b *testing.B) *bench {
	b.Helper()
	broker, err := example.StartServer(b.Context(), "rabbitmq")
	must(b, err)
	b.Cleanup(func() { must(b, broker.Stop()) })
	return &bench{broker: broker, suite: newSuite(b.Context(), b)}
}

// entry is a contender with its queues.
type entry struct {
	*example.Workload
	contender

	queues   Queues
	producer *Producer
	probe    string
}

// enter makes a contender's Deployment. With record, its consumers write down each event.
func (n *bench) enter(b *testing.B, c contender, record bool) *entry {
	b.Helper()
	n.runs++
	e := &entry{contender: c, queues: Queues{Name: fmt.Sprintf("Bench%d", n.runs), SingleActive: c.role == roleSubscriber}, probe: b.TempDir()}
	e.producer = n.newProducer(e.queues)
	b.Cleanup(e.producer.Close)
	annotations := map[string]string{}
	if c.strategy != "" {
		annotations = map[string]string{example.KeyCount: strconv.Itoa(benchQueues), example.KeyStrategy: c.strategy}
	}
	namespace, err := n.suite.NewNamespace(b.Context())
	must(b, err)
	b.Cleanup(func() { must(b, namespace.Delete(context.WithoutCancel(b.Context()))) })
	self, err := os.Executable()
	must(b, err)
	e.Workload, err = example.NewWorkload(b.Context(), n.suite, namespace, example.Spec{
		Name: "bench", Replicas: 0, Annotations: annotations, Command: []string{self}, StatefulSet: c.role == roleOrdinal,
		Env: map[string]string{
			roleEnv: c.role, probeEnv: e.probe, quietEnv: strconv.FormatBool(!record), "RABBITMQ_URL": n.broker.URL,
			"QUEUES": e.queues.Name, "SINGLE_ACTIVE": strconv.FormatBool(e.queues.SingleActive), "PARTITIONS": strconv.Itoa(benchQueues),
		},
	})
	must(b, err)
	return e
}

func (n *bench) newProducer(queues Queues) *Producer {
	log := slog.New(slog.DiscardHandler)
	return &Producer{Queues: queues, Partitions: benchQueues, Log: log, connection: connection{url: n.broker.URL}}
}

func (n *bench) drain(b *testing.B, c contender, rebalancings int) {
	b.Helper()
	ctx := b.Context()
	e := n.enter(b, c, false)
	fill(b, e.producer)
	must(b, e.Scale(ctx, benchConsumers))
	e.left(b, *messages-1)
	begin := time.Now()
	for k, replicas := range []int32{benchConsumers - 1, benchConsumers}[:rebalancings] {
		e.left(b, *messages-(k+1)**messages/3)
		must(b, e.Scale(ctx, replicas))
	}
	e.left(b, 0)
	took := time.Since(begin)
	b.ReportMetric(took.Seconds(), "s")
	b.ReportMetric(float64(*messages)/took.Seconds(), "messages/s")
	must(b, e.Scale(ctx, 0))
}

// fill sends the messages of a run.
func fill(b *testing.B, p *Producer) {
	b.Helper()
	const orders, batch = 1000, 1000
	events := make([]Event, 0, batch)
	for n := range *messages {
		events = append(events, Event{Order: fmt.Sprintf("order-%d", n%orders), Number: n/orders + 1})
		if len(events) == batch || n == *messages-1 {
			must(b, p.Send(b.Context(), events))
			events = events[:0]
		}
	}
}

// left waits until the queues have at most this many messages that were not sent to a consumer.
func (e *entry) left(b *testing.B, most int) {
	b.Helper()
	must(b, wait.PollUntilContextCancel(b.Context(), 100*time.Millisecond, true, func(context.Context) (bool, error) {
		sum := 0
		for p := range benchQueues {
			q, err := e.producer.ch.QueueDeclarePassive(e.queues.Queue(p), true, false, false, false, nil)
			if err != nil {
				return false, err
			}
			sum += q.Messages
		}
		return sum <= most, nil
	}))
}

func (n *bench) move(b *testing.B, c contender) {
	b.Helper()
	ctx := b.Context()
	e := n.enter(b, c, true)
	l := newLoad(ctx, b, e.producer, perSecond)
	for _, replicas := range []int32{2, 4, 3, 1} {
		must(b, e.Scale(ctx, replicas))
		if c.strategy != "" {
			_, err := e.Settled(ctx, int(replicas), benchQueues)
			must(b, err)
		} else {
			must(b, e.Running(ctx, int(replicas)))
		}
		w := way{Workload: e.Workload, probe: e.probe, partitions: benchQueues}
		w.progress(ctx, b)
	}
	_, err := l.Stop()
	must(b, err)
	gaps, err := idle(e.probe)
	must(b, err)
	if len(gaps) > 0 {
		b.ReportMetric(gaps[len(gaps)/2].Seconds(), "s/median-gap")
		b.ReportMetric(gaps[len(gaps)-1].Seconds(), "s/max-gap")
	}
	b.ReportMetric(float64(len(gaps)), "moves")
	if c.role != roleSubscriber { // there every consumer subscribes to every queue, and the broker chooses
		records, err := overlap.Read(e.probe)
		must(b, err)
		report, _ := overlap.Check(records) // what it lists is measured here, not judged
		doubles := 0
		for _, sentence := range report.Violations {
			if strings.Contains(sentence, "both showed it") {
				doubles++
			}
		}
		b.ReportMetric(float64(doubles), "doubles")
	}
	must(b, e.Scale(ctx, 0))
}

// idle returns for each move of a queue how long nobody processed an event of it, sorted.
func idle(dir string) ([]time.Duration, error) {
	byOrder, err := example.ReadProcessed(dir)
	if err != nil {
		return nil, err
	}
	byQueue := map[int][]example.Processed{}
	for order, events := range byOrder {
		queue := Partition(order, benchQueues)
		byQueue[queue] = append(byQueue[queue], events...)
	}
	var gaps []time.Duration
	for _, events := range byQueue {
		slices.SortFunc(events, func(a, b example.Processed) int { return cmp.Compare(a.Begin, b.Begin) })
		for i := 1; i < len(events); i++ {
			if events[i].By != events[i-1].By {
				gaps = append(gaps, time.Duration(max(0, events[i].Begin-events[i-1].End)))
			}
		}
	}
	slices.Sort(gaps)
	return gaps, nil
}

// subscribe works on all queues, or on those of an ordinal, until ctx ends.
func subscribe(ctx context.Context, work func(context.Context, idalloc.Partition) error) error {
	count, err := strconv.Atoi(os.Getenv("PARTITIONS"))
	if err != nil {
		return err
	}
	mine := placement.Between(0, count-1)
	if os.Getenv(roleEnv) == roleOrdinal {
		pod := os.Getenv("POD_NAME")
		ordinal, errOrdinal := strconv.Atoi(pod[strings.LastIndexByte(pod, '-')+1:])
		replicas, errReplicas := strconv.Atoi(os.Getenv(example.EnvReplicas))
		if err := errors.Join(errOrdinal, errReplicas); err != nil {
			return err
		}
		mine = placement.Range{ID: ordinal, Count: replicas, Partitions: count}.Set()
	}
	var all sync.WaitGroup
	for p := range mine.All() {
		all.Go(func() { _ = work(ctx, idalloc.Partition{Number: p, Count: count}) }) // Work returns no error
	}
	all.Wait()
	<-ctx.Done() // a pod without a queue stays
	return nil
}
