package example

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/test/overlap"
)

// Event is something that happened to an order.
type Event struct {
	Order string
	// Number counts the events of an order, from 1.
	Number int
}

// Recorder writes down which partitions a pod works on, for package overlap, and which events it processes.
type Recorder struct {
	dir, pod, uid string
	events        *os.File

	mu   sync.Mutex
	logs map[int]*overlap.Writer // of the partitions on which it works
}

// suffix is what the names of the files with events end with.
const suffix = ".events"

// NewRecorder returns the recorder of a pod, which writes into a directory that all pods share.
func NewRecorder(dir, pod, uid string) (*Recorder, error) {
	events, err := os.OpenFile(filepath.Join(dir, pod+suffix), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // the test's directory, and its user is another one where pods are containers
	return &Recorder{dir: dir, pod: pod, uid: uid, events: events, logs: map[int]*overlap.Writer{}}, err
}

// Work writes down that a partition is worked on, from before the first event to after the last.
func (r *Recorder) Work(next func(context.Context, idalloc.Partition) error) func(context.Context, idalloc.Partition) error {
	return func(ctx context.Context, p idalloc.Partition) error {
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

func shown(p idalloc.Partition) func() (id, count int, token int64) {
	return func() (id, count int, token int64) { return p.Number, p.Count, p.Token }
}

// Event writes an event down whose processing began at a time of overlap.Now. again says that it may have been processed before. Call it
// before the event is acknowledged: one that is not written down is not lost.
func (r *Recorder) Event(p idalloc.Partition, begin int64, e Event, again bool) error {
	r.mu.Lock()
	log := r.logs[p.Number]
	r.mu.Unlock()
	if err := log.Sample(shown(p)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(r.events, "%d %d %s %d %t\n", begin, overlap.Now(), e.Order, e.Number, again)
	return err
}

// Close closes the file of the events.
func (r *Recorder) Close() error { return r.events.Close() }

// Processed is an event that a pod wrote down.
type Processed struct {
	Event

	Begin, End int64
	// Again says that it may have been processed before.
	Again bool
	// By is the file of the pod.
	By string
}

// ReadProcessed returns the events of all pods, by order, each order's by time.
func ReadProcessed(dir string) (map[string][]Processed, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	byOrder := map[string][]Processed{}
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
		slices.SortFunc(events, func(a, b Processed) int { return int(a.Begin - b.Begin) })
	}
	return byOrder, nil
}

// readEvents returns the events of one pod.
func readEvents(file string) ([]Processed, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the test's own file
	if err != nil {
		return nil, err
	}
	var events []Processed
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			continue // its writer was killed, or is writing it
		}
		p := Processed{By: file}
		if _, err := fmt.Sscan(line, &p.Begin, &p.End, &p.Order, &p.Number, &p.Again); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, line, err)
		}
		events = append(events, p)
	}
	return events, nil
}
