package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

//nolint:gochecknoglobals // flags of the test binary
var messages = flag.Int("messages", 1_000_000, "how many messages BenchmarkDrain sends")

const (
	// benchQueues and benchConsumers are those of the comparison of strategies by the RocketMQ community.
	benchQueues, benchConsumers = 4, 4
	// roleOrdinal computes its queues from its ordinal and the number of replicas, which it asks for again and again, as a StatefulSet
	// without idalloc would.
	roleOrdinal = "ordinal"
	// pollReplicas is how often it asks.
	pollReplicas = 3 * time.Second
)

// contender is a way to have each queue consumed by one consumer.
type contender struct {
	name, role string
	strategy   string // of partitions
}

// single says that the queues have single active consumers. Without idalloc nothing else keeps two consumers apart.
func (c contender) single() bool { return c.role != roleConsumer }

func contenders() []contender {
	return []contender{
		{"sticky, decided once for all", roleConsumer, placement.NameSticky},
		{"averagely (even), decided once for all", roleConsumer, placement.NameEven},
		{"averagely, by each client", roleOrdinal, ""},
	}
}

// BenchmarkDrain measures how long four consumers take to empty four queues, while consumers leave and come.
func BenchmarkDrain(b *testing.B) {
	bench := newBench(b)
	var table strings.Builder
	fmt.Fprintf(&table, "| %d messages | no rebalancing | one | two |\n| --- | --- | --- | --- |\n", *messages)
	for _, c := range contenders() {
		fmt.Fprintf(&table, "| %s", c.name)
		for rebalancings := range 3 {
			b.Run(fmt.Sprintf("%s/%d rebalancings", c.name, rebalancings), func(b *testing.B) {
				for b.Loop() {
					fmt.Fprintf(&table, " | %.1f s", bench.drain(b, c, rebalancings).Seconds())
				}
			})
		}
		table.WriteString(" |\n")
	}
	show(b, &table)
}

// show prints a table for a document.
func show(b *testing.B, table *strings.Builder) {
	b.Helper()
	_, err := fmt.Fprintf(os.Stdout, "\n%s", table)
	must(b, err)
}

// bench is what the benchmarks share.
type bench struct {
	broker *example.Server
	suite  *suite.Suite
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
	*way
	contender
}

// enter makes a contender's workload. With record, its consumers write down each event.
func (n *bench) enter(b *testing.B, c contender, count int, record bool) *entry {
	b.Helper()
	spec := example.Spec{
		Name: "bench", StatefulSet: c.role == roleOrdinal,
		Env: map[string]string{roleEnv: c.role, quietEnv: strconv.FormatBool(!record), wireEnv: strconv.FormatBool(record)},
	}
	if c.strategy != "" {
		spec.Annotations = map[string]string{example.KeyStrategy: c.strategy, example.KeyFailoverAfter: benchFailover}
	}
	return &entry{newWay(b.Context(), b, n.suite, n.broker.URL, count, c.single(), spec), c}
}

func (n *bench) drain(b *testing.B, c contender, rebalancings int) time.Duration {
	b.Helper()
	ctx := b.Context()
	e := n.enter(b, c, benchQueues, false)
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
	return took
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
			q, err := e.producer.out.QueueDeclarePassive(e.queues.Queue(p), true, false, false, false, nil)
			if err != nil {
				return false, err
			}
			sum += q.Messages
		}
		return sum <= most, nil
	}))
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

// subscribe works on the queues of an ordinal until ctx ends.
func subscribe(ctx context.Context, work func(context.Context, idalloc.Partition) error) error {
	count, err := strconv.Atoi(os.Getenv("PARTITIONS"))
	if err != nil {
		return err
	}
	share, err := averagely(count)
	if err != nil {
		return err
	}
	running := map[int]func(){} // each stops the work on a queue, and waits for its end
	tick := time.NewTicker(pollReplicas)
	defer tick.Stop()
	for {
		mine, err := share(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		for p, stop := range running {
			if !mine.Contains(p) {
				stop()
				delete(running, p)
			}
		}
		for p := range mine.All() {
			if running[p] == nil {
				running[p] = start(ctx, idalloc.Partition{Number: p, Count: count}, work)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			for _, stop := range running {
				stop()
			}
			return nil
		}
	}
}

func start(ctx context.Context, p idalloc.Partition, work func(context.Context, idalloc.Partition) error) (stop func()) {
	working, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { _ = work(working, p) }) // Work returns no error
	return func() {
		cancel()
		done.Wait()
	}
}

// averagely returns what gives a pod of a StatefulSet its run of the queues, by its ordinal and the replicas that the API server tells.
func averagely(count int) (func(context.Context) (placement.Set, error), error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	pod := os.Getenv("POD_NAME")
	dash := strings.LastIndexByte(pod, '-')
	ordinal, err := strconv.Atoi(pod[dash+1:])
	return func(ctx context.Context) (placement.Set, error) {
		set, err := client.AppsV1().StatefulSets(os.Getenv("POD_NAMESPACE")).Get(ctx, pod[:dash], metav1.GetOptions{})
		if err != nil || int(*set.Spec.Replicas) == 0 {
			return placement.Set{}, err
		}
		members := slices.Collect(placement.Between(0, int(*set.Spec.Replicas)-1).All())
		return placement.Even(placement.Input{Partitions: count, Members: members})[ordinal], nil
	}, err
}
