package history

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idalloc/idalloc/test/overlap"
)

// fileName is the file that tells a run's directory from others.
const fileName = "run.txt"

// Fault is one thing that was broken, or done, on purpose.
type Fault struct {
	// At is when it began. Until is when it was over; zero where it has no duration.
	At, Until int64
	// Kind is such as "kill workload"; What is on what, such as a pod's name.
	Kind, What string
	// Workload names the one that it was done to; empty is all of them.
	Workload string
}

// Summary says what ran.
type Summary struct {
	Title string
	// Violations are sentences about what broke a promise. The logs alone may show more, for which nothing is promised.
	Violations []string
	// Notes are sentences for the reader: how to repeat the run, what was settled at its end.
	Notes []string
}

// Writer writes one run. It is safe for concurrent use.
type Writer struct {
	dir       string
	mu        sync.Mutex
	moments   []moment
	workloads []string
}

// moment is a line of the file. All times are nanoseconds of one clock: overlap.Now.
type moment struct {
	at, until int64
	text      string
}

// Create starts a run in dir, which is made if it is not there and must not hold another run.
func Create(dir string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the workloads' users read their way through it
		return nil, fmt.Errorf("history: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, fileName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // to be read by anybody
	if err != nil {
		return nil, fmt.Errorf("history: %w: use an empty directory for each run", err)
	}
	return &Writer{dir: dir}, f.Close()
}

// Fault adds one fault. One with a duration is added when it is over.
func (w *Writer) Fault(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moments = append(w.moments, moment{f.At, f.Until, strings.Join([]string{"fault:", f.Kind, f.Workload, f.What}, " ")})
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

// Close ends the run, and writes its file.
func (w *Writer) Close(s Summary) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, failed := slices.Clone(w.moments), []error(nil)
	for _, name := range w.workloads {
		records, err := overlap.Read(filepath.Join(w.dir, name))
		failed = append(failed, err)
		for _, r := range overlap.Runs(records) {
			all = append(all, moment{r.Start, r.End, fmt.Sprintf("%s: %s shows %d under token %d", name, r.Pod, r.ID, r.Token)})
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	var text strings.Builder
	for _, sentence := range slices.Concat([]string{s.Title}, s.Notes, s.Violations) {
		fmt.Fprintln(&text, sentence)
	}
	for _, m := range all {
		fmt.Fprintf(&text, "%9.3f s for %9.3f s  %s\n", time.Duration(m.at-all[0].at).Seconds(), time.Duration(max(0, m.until-m.at)).Seconds(), strings.TrimSpace(m.text))
	}
	err := os.WriteFile(filepath.Join(w.dir, fileName), []byte(text.String()), 0o644) //nolint:gosec // to be read by anybody
	if err := errors.Join(append(failed, err)...); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}
