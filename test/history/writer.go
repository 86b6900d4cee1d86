package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/idalloc/idalloc/test/overlap"
)

// Writer writes one run. It is safe for concurrent use.
type Writer struct {
	dir    string
	mu     sync.Mutex
	faults *os.File
}

// Create starts a run in dir, which is made if it is not there and must not hold another run.
func Create(dir string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the workloads' users read their way through it
		return nil, fmt.Errorf("history: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, faultsName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // read by whoever makes the report
	if err != nil {
		return nil, fmt.Errorf("history: %w: use an empty directory for each run", err)
	}
	return &Writer{dir: dir, faults: f}, nil
}

// Fault appends one fault. One with a duration is written when it is over.
func (w *Writer) Fault(f Fault) error {
	line, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.faults.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// Workload makes the folder for the logs of a workload's pods, which any user may write to, and
// returns its path.
func (w *Writer) Workload(name string) (string, error) {
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
		if err := os.WriteFile(filepath.Join(dir, pod+overlap.Suffix), text.Bytes(), 0o644); err != nil { //nolint:gosec // read by whoever makes the report
			return fmt.Errorf("history: %w", err)
		}
	}
	return nil
}

// Close ends the run with its summary.
func (w *Writer) Close(s Summary) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, summaryName), append(text, '\n'), 0o644) //nolint:gosec // read by whoever makes the report
	}
	if err != nil {
		return fmt.Errorf("history: %w", errors.Join(err, w.faults.Close()))
	}
	return w.faults.Close()
}
