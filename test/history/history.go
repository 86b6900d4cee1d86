package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/idalloc/idalloc/test/overlap"
)

const (
	summaryName = "run.json"
	faultsName  = "faults.jsonl"
)

// Fault is one thing that was broken, or done, on purpose.
type Fault struct {
	// At is when it began. Until is when it was over; zero where it has no duration.
	At    int64 `json:"at"`
	Until int64 `json:"until,omitempty"`
	// Kind is what is counted, such as "kill workload"; What is on what, such as a pod's name.
	Kind string `json:"kind"`
	What string `json:"what,omitempty"`
	// Workload names the one that it was done to; empty is all of them.
	Workload string `json:"workload,omitempty"`
}

// Summary says what ran.
type Summary struct {
	// Title is the page's; Seed repeats the run.
	Title string `json:"title"`
	Seed  string `json:"seed,omitempty"`
	// Histories is how many were checked, Steps of how many steps they were: 1 and 0 for a chaos run.
	Histories int64 `json:"histories"`
	Steps     int64 `json:"steps,omitempty"`
	// Faults counts, by kind, those of histories that are not drawn.
	Faults map[string]int64 `json:"faults,omitempty"`
	// Violations are sentences, beside those that the logs show, unless Judged.
	Violations []string `json:"violations,omitempty"`
	// Judged says that these are all: whoever wrote the run knew what the logs do not show, such as whom nothing is promised.
	Judged bool `json:"judged,omitempty"`
	// Notes are sentences for the reader: how to repeat the run, what was settled at its end.
	Notes []string `json:"notes,omitempty"`
}

// Workload is one owner's pods.
type Workload struct {
	Name    string
	Records []overlap.Record
}

// Run is what Read returns.
type Run struct {
	Summary
	// Faults are sorted by their begin, Workloads by their name.
	Injected  []Fault
	Workloads []Workload
}

// Read reads a run. One that was killed has no summary, and its last fault may be cut off.
func Read(dir string) (Run, error) {
	var run Run
	text, err := os.ReadFile(filepath.Join(dir, summaryName)) //nolint:gosec // the caller names the directory
	if err == nil {
		err = json.Unmarshal(text, &run.Summary)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return run, fmt.Errorf("history: %s: %w", summaryName, err)
	}
	if run.Injected, err = readFaults(filepath.Join(dir, faultsName)); err != nil {
		return run, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return run, fmt.Errorf("history: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		records, err := overlap.Read(filepath.Join(dir, e.Name()))
		if err != nil {
			return run, err
		}
		if len(records) > 0 {
			run.Workloads = append(run.Workloads, Workload{Name: e.Name(), Records: records})
		}
	}
	return run, nil
}

func readFaults(path string) ([]Fault, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the caller names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var faults []Fault
	lines := bufio.NewScanner(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
	for n := 1; lines.Scan(); n++ {
		var f Fault
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return nil, fmt.Errorf("history: %s:%d: %w", path, n, err)
		}
		faults = append(faults, f)
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return faults, lines.Err()
}
