package simulation

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// figures sum histories up.
type figures struct {
	histories, steps int
	virtual, took    time.Duration
	// busy is the processor time that the programs used.
	busy   time.Duration
	faults map[string]int
	failed []Result
	sums   map[uint64]uint64 // of each history, by seed
}

func (f *figures) add(r Result) {
	if f.sums == nil {
		f.sums = map[uint64]uint64{}
	}
	f.sums[r.Seed] = r.Sum
	f.histories++
	f.steps += r.Steps
	f.virtual += r.Virtual
	for name, n := range r.Faults {
		f.faults[name] += n
	}
	if len(r.Violations) > 0 {
		f.failed = append(f.failed, r)
	}
}

// String returns the figures as a report.
func (f *figures) String() string {
	perMinute := float64(f.steps) / max(f.took.Minutes(), 1e-9)
	return fmt.Sprintf("%d histories, %d steps in %s (%.0f a minute; %.0f per minute of a processor), %s of virtual time, %d violations\nfaults:\n%s",
		f.histories, f.steps, f.took.Round(time.Millisecond), perMinute, float64(f.steps)/max(f.busy.Minutes(), 1e-9), f.virtual.Round(time.Second), len(f.failed), tell(f.faults))
}

// failure says what was broken, and how to see it again.
func (r Result) failure() string {
	var b strings.Builder
	again := fmt.Sprintf("go test ./test/simulation -run TestSimulation -seed=%d", r.Seed)
	if len(r.Kept) > 0 {
		again += " -only=" + strings.Join(r.Kept, ",")
	}
	fmt.Fprintf(&b, "seed %d: %s\nagain: %s\nfaults that are enough:", r.Seed, r.About, again)
	for _, f := range r.List {
		b.WriteString(" " + f.String())
	}
	for _, v := range r.Violations {
		b.WriteString("\n  " + v)
	}
	return b.String()
}

// options are what to play.
type options struct {
	seeds       int
	first, seed uint64
	minutes     float64
	workers     int
	pass        []string // more flags
}

// playOutside plays in several programs at once, each with one processor. It ends when all have ended. Its error is
// that of a program that did not survive a seed.
func playOutside(ctx context.Context, program string, o options) (*figures, error) {
	total := &figures{faults: map[string]int{}}
	workers := max(1, o.workers)
	if o.seed != 0 {
		workers = 1
	}
	began := time.Now()
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	for i := range workers {
		args := append([]string{
			"-test.run=^TestPlay$", "-test.timeout=0", "-first=" + strconv.FormatUint(o.first+uint64(i), 10), "-stride=" + strconv.Itoa(workers),
			"-seed=" + strconv.FormatUint(o.seed, 10), fmt.Sprintf("-minutes=%g", o.minutes),
		}, o.pass...)
		if o.seeds > 0 {
			args = append(args, "-seeds="+strconv.Itoa((o.seeds+workers-1-i)/workers))
		}
		results := filepath.Join(filepath.Dir(program), "results-"+strconv.Itoa(i))
		running.Go(func() {
			busy, err := playIn(ctx, program, append(args, "-results="+results), results, func(r Result) {
				mu.Lock()
				defer mu.Unlock()
				total.add(r)
			})
			mu.Lock()
			defer mu.Unlock()
			total.busy += busy
			failed = append(failed, err)
		})
	}
	running.Wait()
	total.took = time.Since(began)
	return total, errors.Join(failed...)
}

func playIn(ctx context.Context, program string, args []string, results string, add func(Result)) (busy time.Duration, err error) {
	worker := exec.CommandContext(ctx, program, args...) //nolint:gosec // built by Build
	// The garbage collector stops goroutines where it likes, and so changes their order: it runs between histories.
	worker.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1,adaptivestackstart=0", "GOGC=off", "GOMEMLIMIT=2GiB")
	out, failed := worker.CombinedOutput()
	if s := worker.ProcessState; s != nil {
		busy = s.UserTime() + s.SystemTime()
	}
	f, err := os.Open(results) //nolint:gosec // written by the worker
	if err != nil {
		return busy, fmt.Errorf("%w\n%s", errors.Join(err, failed), out)
	}
	defer f.Close() //nolint:errcheck // it was read
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	var begun, done uint64
	for lines.Scan() {
		var r Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return busy, err
		}
		if r.Steps == 0 {
			begun = r.Seed
			continue
		}
		done = r.Seed
		add(r)
	}
	if failed != nil || begun != done {
		const most = 8000
		return busy, fmt.Errorf("seed %d did not end: %w\n%s", begun, failed, out[max(0, len(out)-most):])
	}
	return busy, lines.Err()
}
