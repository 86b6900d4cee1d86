package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/idalloc/idalloc/test/overlap"
)

// pageName is the file that tells a run's directory from others.
const pageName = "index.html"

// Fault is one thing that was broken, or done, on purpose.
type Fault struct {
	// At is when it began. Until is when it was over; zero where it has no duration.
	At    int64 `json:"at"`
	Until int64 `json:"until"`
	// Kind is what is counted, such as "kill workload"; What is on what, such as a pod's name.
	Kind string `json:"kind"`
	What string `json:"what"`
	// Workload names the one that it was done to; empty is all of them.
	Workload string `json:"workload"`
}

// Summary says what ran.
type Summary struct {
	// Title is the page's; Seed repeats the run.
	Title string `json:"title"`
	Seed  string `json:"seed"`
	// Histories is how many were checked, Steps of how many steps they were: 1 and 0 for a chaos run.
	Histories int64 `json:"histories"`
	Steps     int64 `json:"steps"`
	// Counts counts, by kind, faults that are not drawn.
	Counts map[string]int64 `json:"counts"`
	// Violations are sentences about what broke a promise. The logs alone may show more, for which nothing is promised.
	Violations []string `json:"violations"`
	// Notes are sentences for the reader: how to repeat the run, what was settled at its end.
	Notes []string `json:"notes"`
}

// Writer writes one run. It is safe for concurrent use.
type Writer struct {
	dir       string
	mu        sync.Mutex
	faults    []Fault
	workloads []string
}

// Create starts a run in dir, which is made if it is not there and must not hold another run.
func Create(dir string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the workloads' users read their way through it
		return nil, fmt.Errorf("history: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, pageName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // a page to be read by anybody
	if err != nil {
		return nil, fmt.Errorf("history: %w: use an empty directory for each run", err)
	}
	return &Writer{dir: dir}, f.Close()
}

// Fault adds one fault. One with a duration is added when it is over.
func (w *Writer) Fault(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, f)
}

// Workload makes the folder for the logs of a workload's pods, which any user may write to, and
// returns its path.
func (w *Writer) Workload(name string) (string, error) {
	w.mu.Lock()
	w.workloads = append(w.workloads, name)
	w.mu.Unlock()
	dir := filepath.Join(w.dir, name)
	err := os.MkdirAll(dir, 0o777) //nolint:gosec // the containers run as another user
	if err == nil {
		err = os.Chmod(dir, 0o777) //nolint:gosec // as above
	}
	if err != nil {
		return "", fmt.Errorf("history: %w", err)
	}
	return dir, nil
}

// Records writes the logs of a workload whose pods did not write them, those of each pod in their order.
func (w *Writer) Records(workload string, records []overlap.Record) error {
	dir, err := w.Workload(workload)
	if err != nil {
		return err
	}
	logs := map[string]*bytes.Buffer{}
	for _, r := range records {
		if logs[r.Pod] == nil {
			logs[r.Pod] = &bytes.Buffer{}
		}
		fmt.Fprintln(logs[r.Pod], r)
	}
	for pod, text := range logs {
		if err := os.WriteFile(filepath.Join(dir, pod+overlap.Suffix), text.Bytes(), 0o644); err != nil { //nolint:gosec // a log to be read by anybody
			return fmt.Errorf("history: %w", err)
		}
	}
	return nil
}
