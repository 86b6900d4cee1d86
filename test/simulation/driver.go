package simulation

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// figures sum histories up.
type figures struct {
	histories, steps, conform int
	virtual, took             time.Duration
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
	f.conform += r.Conform
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
	speed := fmt.Sprintf("%.0f a minute", float64(f.steps)/max(f.took.Minutes(), 1e-9))
	if f.busy > 0 {
		speed += fmt.Sprintf("; %.0f per minute of a processor", float64(f.steps)/f.busy.Minutes())
	}
	return fmt.Sprintf("%d histories, %d steps, %d of the proof, in %s (%s), %s of virtual time, %d violations\nfaults:\n%s",
		f.histories, f.steps, f.conform, f.took.Round(time.Millisecond), speed, f.virtual.Round(time.Second), len(f.failed), tell(f.faults))
}

// again is the command that plays the history again.
func (r Result) again() string {
	again := fmt.Sprintf("%s -run TestSimulation -v -seed=%d", r.Command, r.Seed)
	if len(r.Names) > 0 {
		again += " -faults=" + strings.Join(r.Names, ",")
	}
	if len(r.Kept) > 0 {
		again += " -only=" + strings.Join(r.Kept, ",")
	}
	return again
}

// failure says what was broken, and how to see it again.
func (r Result) failure() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s\nagain: %s\nfaults that are enough:", r.Seed, r.About, r.again())
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
	// patience is how long a program may need for a history, in real time. 0 is for ever.
	patience time.Duration
	pass     []string // more flags
	// failed is told of each broken promise when it is found, and progress of how far it is, once in a while. They may be nil.
	failed   func(r Result)
	progress func(so string)
}

// tellEvery is how often there is word of how far it is.
const tellEvery = 10 * time.Minute

// playOutside plays in several programs at once, each with one processor. It ends when all have ended. Its error is
// that of a program that did not survive a seed.
func playOutside(ctx context.Context, program string, o options) (*figures, error) {
	total := &figures{faults: map[string]int{}}
	workers := max(1, o.workers)
	if o.seed != 0 {
		workers = 1
	}
	began := time.Now()
	next := tellEvery
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
		running.Go(func() {
			busy, err := playIn(ctx, program, args, o.patience, func(r Result) {
				mu.Lock()
				defer mu.Unlock()
				total.add(r)
				if o.failed != nil && len(r.Violations) > 0 {
					o.failed(r)
				}
				if took := time.Since(began); o.progress != nil && took > next {
					o.progress(fmt.Sprintf("after %s: %d histories, %d steps, %d violations", took.Round(time.Second), total.histories, total.steps, len(total.failed)))
					next += tellEvery
				}
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

// playIn plays in one program, and hands on what it says as soon as it says it. It blocks until the program has ended. It kills one that
// needs longer than patience for a history.
func playIn(ctx context.Context, program string, args []string, patience time.Duration, add func(Result)) (busy time.Duration, err error) {
	results, write, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	worker := exec.CommandContext(ctx, program, append(args, "-results=/dev/fd/3")...) //nolint:gosec // built by overlay.BuildTests
	worker.ExtraFiles = []*os.File{write}
	var out bytes.Buffer
	worker.Stdout, worker.Stderr = &out, &out
	// The garbage collector stops goroutines where it likes, and so changes their order: it runs between histories.
	worker.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1,adaptivestackstart=0", "GOGC=off", "GOMEMLIMIT=2GiB")
	err = worker.Start()
	_ = write.Close() // the worker has its own
	if err != nil {
		return 0, errors.Join(err, results.Close())
	}
	patience = cmp.Or(patience, math.MaxInt64)
	late := time.AfterFunc(patience, func() { _ = worker.Process.Kill() })
	defer late.Stop()
	begun, ended, err := hear(results, func(r Result) {
		late.Reset(patience)
		add(r)
	})
	_ = results.Close() // a worker that is not done finds that the reader has closed
	failed := worker.Wait()
	busy = worker.ProcessState.UserTime() + worker.ProcessState.SystemTime()
	if err == nil && (failed != nil || !ended) {
		const most = 8000
		err = fmt.Errorf("seed %d did not end: %w\n%s\nagain: %s", begun.Seed, failed, out.Bytes()[max(0, out.Len()-most):], begun.again())
	}
	return busy, err
}

// hear reads the results of a worker until it has ended. It returns the seed that it began last, and whether that came to its end.
func hear(results io.Reader, add func(Result)) (begun Result, ended bool, err error) {
	lines := bufio.NewScanner(results)
	lines.Buffer(nil, 1<<24)
	ended = true
	for lines.Scan() {
		var r Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return begun, ended, err
		}
		if ended = r.Steps > 0; !ended {
			begun = r
			continue
		}
		add(r)
	}
	return begun, ended, lines.Err()
}

// tell lists how often each fault happened.
func tell(faults map[string]int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		fmt.Fprintf(&b, "  %-24s %d\n", name, faults[name])
	}
	return b.String()
}
