package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
	"github.com/idalloc/idalloc/test/overlap"
)

// roleEnv makes this test binary play a broker, or a consumer that writes down what it does in the directory that probeEnv names. It does not
// begin while there is the file hold in that directory.
const (
	roleEnv      = "ORDERS_ROLE"
	roleBroker   = "broker"
	roleConsumer = "consumer"
	probeEnv     = "PROBE_DIR"
	hold         = "hold"
)

const (
	partitions = 12
	// capacity is what the autoscaler is told that a pod works off, in records per second, and calm the load that two pods hold.
	capacity, calm = 100, 140
	// long is many times what the test needs.
	long = 10 * time.Minute
)

func TestMain(m *testing.M) {
	play, ok := map[string]func() error{roleBroker: playBroker, roleConsumer: playConsumer}[os.Getenv(roleEnv)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := play(); err != nil {
		slog.New(slog.NewJSONHandler(os.Stderr, nil)).Error("ended", "error", err)
		os.Exit(1)
	}
}

func playConsumer() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	for {
		if _, err := os.Stat(filepath.Join(os.Getenv(probeEnv), hold)); err != nil || ctx.Err() != nil { //nolint:gosec // the test's directory
			break
		}
		pause(ctx, retryDelay)
	}
	r, err := example.NewRecorder(os.Getenv(probeEnv), os.Getenv("POD_NAME"), os.Getenv("POD_UID"))
	if err != nil {
		return err
	}
	c := newConsumer(log, func(_ context.Context, p idalloc.Partition, record *kgo.Record) error {
		begin := overlap.Now()
		e, err := parseEvent(record)
		if err != nil {
			return err
		}
		// Kafka does not say whether a record comes again. One whose offset could not be committed does.
		return r.Event(p, begin, example.Event(e), true)
	})
	return errors.Join(idalloc.RunPartitions(ctx, options(log), r.Work(c.Work)), r.Close())
}

// With -short no autoscaler runs, and so nothing that needs one.
func TestWithABroker(t *testing.T) {
	t.Run("scaled under load", testScaledUnderLoad)
	if !testing.Short() {
		t.Run("a killed consumer resumes", testAKilledConsumerResumes)
		t.Run("a topic is added to the list", testATopicIsAddedToTheList)
	}
}

// Every record is processed at least once, and none before one that was written before it, while the autoscaler follows a load that rises and
// falls, or with -short while a person scales by hand. How many were processed again, because a commit failed, is logged: no pod is killed
// here, so they should be few.
func testScaledUnderLoad(t *testing.T) {
	t.Helper()
	b := newBench(t, partitions, nil)
	// It stands before all others in its partition, and is put aside.
	poison := &kgo.Record{Topic: topic(), Key: []byte("poison"), Value: []byte("no order")}
	must(t, b.producer.ProduceSync(b.ctx, poison).FirstErr())
	load := b.load(topic(), calm)
	var err error
	if testing.Short() {
		err = byHand(b.ctx, b.Workload)
	} else {
		b.autoscale("--kafka-topic="+topic(), "--kafka-measure=records")
		var most int
		most, err = b.Swing(b.ctx, load, partitions, calm, capacity)
		t.Logf("2 to %d to 2 pods", most)
	}
	sent, failed := load.Stop()
	must(t, errors.Join(err, failed))
	b.judge(sent)
	b.putAside(poison)
}

// putAside waits for a record that was put aside, and checks that it is this one, with the reason.
func (b *bench) putAside(poison *kgo.Record) {
	b.t.Helper()
	b.producer.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic() + "-dead": {0: kgo.NewOffset().AtStart()}})
	fetches := b.producer.PollFetches(b.ctx)
	must(b.t, fetches.Err())
	for _, r := range fetches.Records() {
		said := map[string]string{}
		for _, h := range r.Headers {
			said[h.Key] = string(h.Value)
		}
		if string(r.Key) != "poison" || string(r.Value) != "no order" || said["partition"] != strconv.Itoa(int(poison.Partition)) || !strings.Contains(said["error"], "not an event of an order") {
			b.t.Errorf("put aside: %s: %s with %v", r.Key, r.Value, said)
		}
	}
}

// bench is a broker, and a workload of one pod whose consumers are this binary.
type bench struct {
	*example.Workload

	ctx       context.Context //nolint:containedctx // of one test
	t         *testing.T
	suite     *suite.Suite
	namespace *suite.Namespace
	producer  *kgo.Client
	// probe is where the consumers write down what they do, and commits where the broker does.
	probe, commits string
}

// newBench starts it, with so many partitions of the first topic. environment is for the consumers.
func newBench(t *testing.T, first int, environment map[string]string) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	t.Cleanup(cancel)
	b := &bench{ctx: ctx, t: t, probe: t.TempDir()}
	brokers, commits := startBroker(t)
	b.commits = commits
	t.Setenv("KAFKA_BROKERS", strings.Join(brokers, ","))
	t.Setenv("PARTITIONS", strconv.Itoa(first))
	var err error
	b.producer, err = newProducer(ctx)
	must(t, err)
	t.Cleanup(b.producer.Close)
	b.suite, err = suite.Start(ctx, suite.Options{SkipBinary: true})
	must(t, err)
	t.Cleanup(func() { must(t, b.suite.Stop()) })
	b.namespace, err = b.suite.NewNamespace(ctx)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	strategy := "external"
	if testing.Short() { // no autoscaler says who is to own what
		strategy = placement.DefaultName
	}
	all := map[string]string{roleEnv: roleConsumer, probeEnv: b.probe, "KAFKA_BROKERS": strings.Join(brokers, ",")}
	maps.Copy(all, environment)
	b.Workload, err = example.NewWorkload(ctx, b.suite, b.namespace, example.Spec{
		Name: example.Scaled, Replicas: 1,
		Annotations: map[string]string{example.KeyCount: strconv.Itoa(partitions), example.KeyStrategy: strategy},
		Command:     []string{self},
		Env:         all,
	})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(b.Logs(context.WithoutCancel(ctx)))
		}
	})
	return b
}

// load writes events into a topic. The names of its orders begin with the topic's.
func (b *bench) load(topic string, perSecond float64) *example.Load {
	return example.StartLoad(b.ctx, perSecond, func(ctx context.Context, sent []example.Event) error {
		events := make([]Event, 0, len(sent))
		for _, e := range sent {
			events = append(events, Event{Order: topic + "/" + e.Order, Number: e.Number})
		}
		return send(ctx, b.producer, topic, events)
	})
}

// autoscale starts an autoscaler that reads the broker.
func (b *bench) autoscale(args ...string) *example.Autoscaler {
	b.t.Helper()
	args = append([]string{"--capacity=" + strconv.Itoa(capacity), "--source=kafka", "--kafka-brokers=" + os.Getenv("KAFKA_BROKERS")}, args...)
	autoscaler, err := example.StartAutoscaler(b.ctx, b.suite, b.namespace, args...)
	must(b.t, err)
	b.t.Cleanup(func() {
		if b.t.Failed() {
			b.t.Log(autoscaler.Log())
		}
		must(b.t, autoscaler.Stop())
	})
	return autoscaler
}

// judge judges what the consumers and the broker wrote down about the events of these topics.
func (b *bench) judge(sent map[string]int, topics ...string) {
	b.t.Helper()
	if len(topics) == 0 {
		topics = []string{topic()}
		named := map[string]int{}
		for order, last := range sent {
			named[topic()+"/"+order] = last
		}
		sent = named
	}
	example.Judge(b.ctx, b.t, b.probe, sent)
	for _, topic := range topics {
		committed(b.ctx, b.t, kadm.NewClient(b.producer), topic)
	}
	wrong, n, err := backwards(b.commits)
	must(b.t, err)
	for _, sentence := range wrong[:min(len(wrong), 10)] {
		b.t.Error(sentence)
	}
	b.t.Logf("%d commits", n)
}

func byHand(ctx context.Context, w *example.Workload) error {
	for _, n := range []int{1, 3, 2} {
		if err := w.Scale(ctx, int32(n)); err != nil { //nolint:gosec // a few
			return err
		}
		if _, err := w.Settled(ctx, n, partitions); err != nil {
			return err
		}
	}
	return nil
}

// committed waits until every offset of a topic is committed up to the end.
func committed(ctx context.Context, t *testing.T, admin *kadm.Client, topic string) {
	t.Helper()
	until(ctx, t, "the committed offsets are the ends", func() (bool, error) {
		n, err := waiting(ctx, admin, topic)
		return n == 0, err
	})
}

// waiting returns how many records of a topic are not committed.
func waiting(ctx context.Context, admin *kadm.Client, topic string) (n int64, err error) {
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	offsets, err := admin.FetchOffsetsForTopics(ctx, "workers", topic)
	if err != nil {
		return 0, err
	}
	for p, end := range ends[topic] {
		at, _ := offsets.Lookup(topic, p)
		n += end.Offset - max(0, at.At)
	}
	return n, nil
}

func until(ctx context.Context, t *testing.T, what string, fits func() (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) { return fits() })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
