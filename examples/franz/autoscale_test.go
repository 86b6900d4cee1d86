package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
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

// roleEnv makes this test binary play a broker, or a consumer that writes down what it does in the directory that probeEnv names.
const (
	roleEnv      = "ORDERS_ROLE"
	roleBroker   = "broker"
	roleConsumer = "consumer"
	probeEnv     = "PROBE_DIR"
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

// Every record is processed at least once, and none before one that was written before it, while the autoscaler follows a load that rises and
// falls, or with -short while somebody scales by hand. How many were processed again, because a commit failed, is logged: nobody is killed
// here, so they should be few.
func TestScaledUnderLoad(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	brokers, commits := startBroker(t)
	t.Setenv("KAFKA_BROKERS", strings.Join(brokers, ","))
	t.Setenv("PARTITIONS", strconv.Itoa(partitions))
	producer, err := newProducer(ctx)
	must(t, err)
	t.Cleanup(producer.Close)
	s, err := suite.Start(ctx, suite.Options{SkipBinary: true})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	namespace, err := s.NewNamespace(ctx)
	must(t, err)
	probe := t.TempDir()
	w := deploy(ctx, t, s, namespace, probe, brokers)
	load := example.StartLoad(ctx, calm, func(ctx context.Context, sent []example.Event) error {
		events := make([]Event, 0, len(sent))
		for _, e := range sent {
			events = append(events, Event(e))
		}
		return send(ctx, producer, events)
	})
	if testing.Short() {
		err = byHand(ctx, w)
	} else {
		err = byLoad(ctx, t, s, namespace, w, load)
	}
	sent, failed := load.Stop()
	must(t, errors.Join(err, failed))
	judge(ctx, t, probe, sent)
	committed(ctx, t, kadm.NewClient(producer))
	wrong, n, err := backwards(commits)
	must(t, err)
	for _, sentence := range wrong[:min(len(wrong), 10)] {
		t.Error(sentence)
	}
	t.Logf("%d commits", n)
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

func byLoad(ctx context.Context, t *testing.T, s *suite.Suite, namespace *suite.Namespace, w *example.Workload, load *example.Load) error {
	t.Helper()
	autoscaler, err := example.StartAutoscaler(ctx, s, namespace, "--capacity="+strconv.Itoa(capacity),
		"--source=kafka", "--kafka-brokers="+os.Getenv("KAFKA_BROKERS"), "--kafka-topic="+topic(), "--kafka-measure=records")
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(autoscaler.Log())
		}
		must(t, autoscaler.Stop())
	})
	most, err := w.Swing(ctx, load, partitions, calm, capacity)
	t.Logf("2 to %d to 2 pods", most)
	return err
}

// deploy makes a workload of one pod. Each pod is this binary as a consumer.
func deploy(ctx context.Context, t *testing.T, s *suite.Suite, namespace *suite.Namespace, probe string, brokers []string) *example.Workload {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	strategy := "external"
	if testing.Short() { // no autoscaler says who is to own what
		strategy = placement.DefaultName
	}
	w, err := example.NewWorkload(ctx, s, namespace, example.Spec{
		Name: example.Scaled, Replicas: 1,
		Annotations: map[string]string{example.KeyCount: strconv.Itoa(partitions), example.KeyStrategy: strategy},
		Command:     []string{self},
		Env:         map[string]string{roleEnv: roleConsumer, probeEnv: probe, "KAFKA_BROKERS": strings.Join(brokers, ",")},
	})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.Logs(context.WithoutCancel(ctx)))
		}
	})
	return w
}

// judge waits until all that was sent is processed, and judges what the consumers wrote down.
func judge(ctx context.Context, t *testing.T, probe string, sent map[string]int) {
	t.Helper()
	var byOrder map[string][]example.Processed
	until(ctx, t, "every record is processed", func() (done bool, err error) {
		byOrder, err = example.ReadProcessed(probe)
		return example.Missing(sent, byOrder) == 0, err
	})
	wrong, repeats := example.Disorder(byOrder)
	for _, sentence := range wrong[:min(len(wrong), 10)] {
		t.Error(sentence)
	}
	records, err := overlap.Read(probe)
	must(t, err)
	report, err := overlap.Check(records)
	if err != nil {
		t.Error(err)
	}
	absence, moves := example.Absence(records)
	events := 0
	for _, last := range sent {
		events += last
	}
	t.Logf("%d records of %d orders, %d processed again, %d moves, %s without a consumer, all together\n%v", events, len(sent), repeats, moves, absence, report)
}

// committed waits until every offset is committed up to the end.
func committed(ctx context.Context, t *testing.T, admin *kadm.Client) {
	t.Helper()
	ends, err := admin.ListEndOffsets(ctx, topic())
	must(t, err)
	until(ctx, t, "the committed offsets are the ends", func() (bool, error) {
		offsets, err := admin.FetchOffsetsForTopics(ctx, "workers", topic())
		if err != nil {
			return false, err
		}
		all := true
		for p, end := range ends[topic()] {
			at, ok := offsets.Lookup(topic(), p)
			all = all && ok && max(0, at.At) == end.Offset
		}
		return all, nil
	})
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
