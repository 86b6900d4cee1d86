package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idalloc/idalloc/pkg/partition"
	"github.com/idalloc/idalloc/test/overlap"
)

// roleEnv makes this test binary play a consumer that writes down what it does, in the directory that probeEnv names. quietEnv has it leave
// out the events.
const (
	roleEnv      = "ORDERS_ROLE"
	roleConsumer = "consumer"
	probeEnv     = "PROBE_DIR"
	quietEnv     = "ORDERS_QUIET"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == "" {
		os.Exit(m.Run())
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := playConsumer(log); err != nil {
		log.Error("ended", "error", err)
		os.Exit(1)
	}
}

func playConsumer(log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	r, err := newRecorder(os.Getenv(probeEnv), os.Getenv("POD_NAME"), os.Getenv("POD_UID"))
	if err != nil {
		return err
	}
	handle := r.handle
	if os.Getenv(quietEnv) == "true" {
		handle = func(context.Context, partition.Partition, amqp.Delivery) error { return nil }
	}
	c, err := newConsumer(log, handle)
	if err != nil {
		return err
	}
	defer c.Close()
	if os.Getenv(roleEnv) != roleConsumer {
		return errors.Join(subscribe(ctx, r.work(c.Work)), r.events.Close())
	}
	return errors.Join(partition.Run(ctx, options(log), r.work(c.Work)), r.events.Close())
}

// recorder writes down which partitions a pod works on, for package overlap, and which events it processes.
type recorder struct {
	dir, pod, uid string
	events        *os.File

	mu   sync.Mutex
	logs map[int]*overlap.Writer // of the partitions on which it works
}

// suffix is what the names of the files with events end with.
const suffix = ".events"

func newRecorder(dir, pod, uid string) (*recorder, error) {
	events, err := os.OpenFile(filepath.Join(dir, pod+suffix), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the test's directory
	return &recorder{dir: dir, pod: pod, uid: uid, events: events, logs: map[int]*overlap.Writer{}}, err
}

// work writes down that the partition is worked on from before the first message to after the last.
func (r *recorder) work(next func(context.Context, partition.Partition) error) func(context.Context, partition.Partition) error {
	return func(ctx context.Context, p partition.Partition) error {
		log, err := overlap.NewWriter(r.dir, fmt.Sprintf("%s.%d", r.pod, p.Number), r.uid)
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.logs[p.Number] = log
		r.mu.Unlock()
		first := log.Sample(shown(p))
		worked := next(ctx, p)
		return errors.Join(first, worked, log.Sample(shown(p)), log.Sample(overlap.Nothing), log.Close())
	}
}

func shown(p partition.Partition) func() (id, count int, epoch int64) {
	return func() (id, count int, epoch int64) { return p.Number, p.Count, p.Token }
}

// handle writes the event down. It does so before the event is acknowledged: one that is not written down is not lost.
func (r *recorder) handle(_ context.Context, p partition.Partition, d amqp.Delivery) error {
	begin := overlap.Now()
	r.mu.Lock()
	log := r.logs[p.Number]
	r.mu.Unlock()
	e, err := parseEvent(d.Body)
	if err != nil {
		return err
	}
	if err := log.Sample(shown(p)); err != nil {
		return err
	}
	sent, _ := d.Headers[resent].(bool)
	_, err = fmt.Fprintf(r.events, "%d %d %s %d %t\n", begin, overlap.Now(), e.Order, e.Number, d.Redelivered || sent)
	return err
}

// processed is an event that a consumer wrote down. again says that it may have been processed before.
type processed struct {
	Event

	begin, end int64
	again      bool
}

// readProcessed returns the events of all consumers, by order, each order's by time.
func readProcessed(dir string) (map[string][]processed, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	byOrder := map[string][]processed{}
	for _, file := range files {
		events, err := readEvents(file)
		if err != nil {
			return nil, err
		}
		for _, p := range events {
			byOrder[p.Order] = append(byOrder[p.Order], p)
		}
	}
	for _, events := range byOrder {
		slices.SortFunc(events, func(a, b processed) int { return int(a.begin - b.begin) })
	}
	return byOrder, nil
}

// readEvents returns the events of one consumer.
func readEvents(file string) ([]processed, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the test's own file
	if err != nil {
		return nil, err
	}
	var events []processed
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			continue // its writer was killed, or is writing it
		}
		var p processed
		if _, err := fmt.Sscan(line, &p.begin, &p.end, &p.Order, &p.Number, &p.again); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, line, err)
		}
		events = append(events, p)
	}
	return events, nil
}

// missing returns how many of the events that were sent nobody has processed. sent says how many events each order has.
func missing(sent map[string]int, byOrder map[string][]processed) int {
	n := 0
	for order, last := range sent {
		numbers := map[int]struct{}{}
		for _, e := range byOrder[order] {
			numbers[e.Number] = struct{}{}
		}
		n += last - len(numbers)
	}
	return n
}

// disorder returns what is wrong with the order in which events were processed: each order's must be, the first time, in the order
// of their numbers and without a gap, one after the other, and only a message that the broker says may have been processed may be
// processed again. repeats is how many were.
func disorder(byOrder map[string][]processed) (wrong []string, repeats int) {
	for _, order := range slices.Sorted(maps.Keys(byOrder)) {
		last, end := 0, int64(0)
		for _, e := range byOrder[order] {
			switch {
			case e.Number > last+1:
				wrong = append(wrong, fmt.Sprintf("%s: event %d was processed after event %d", order, e.Number, last))
			case e.begin < end:
				wrong = append(wrong, fmt.Sprintf("%s: event %d was begun before the one before it was done", order, e.Number))
			case e.Number <= last && !e.again:
				wrong = append(wrong, fmt.Sprintf("%s: event %d was processed again, and nobody said that it would be", order, e.Number))
			}
			if e.Number <= last {
				repeats++
			}
			last, end = max(last, e.Number), max(end, e.end)
		}
	}
	return wrong, repeats
}
