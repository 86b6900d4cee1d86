package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

// setupTimeout bounds the making of a workload and its end.
const setupTimeout = 10 * time.Minute

// result is what one run gave.
type result struct {
	n        int
	protocol string
	// got is how many pods had an id when the time limit came, if it came.
	got int
	// took is the time until the last pod had its id, or until the limit; p50 and p99 are of the own times of
	// those that got one.
	took, p50, p99 time.Duration
	// counts are the requests until then, server what the API server says of that time.
	counts counts
	server server
	// cpu is what all pods together took of this process's CPU time.
	cpu time.Duration
}

// claimed is what one claimant got.
type claimed struct {
	pod   string
	id    int
	took  time.Duration
	leave func()
	// stopped says that the time limit came first; err is of all other failures.
	stopped bool
	err     error
}

// claims runs all protocols at all sizes. What fails is left out of the table.
func claims(ctx context.Context, env *suite.Suite, o options, out, progress io.Writer) error {
	var results []result
	var failed error
	for _, n := range o.sizes {
		for _, p := range o.protocols {
			if _, err := fmt.Fprintf(progress, "%d pods, %s\n", n, p.name()); err != nil {
				return err
			}
			r, err := measure(ctx, env, p, n, o.limit)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%d pods, %s: %w", n, p.name(), err))
				continue
			}
			if (r.protocol == (ours{}).name() || r.protocol == (told{}).name()) && r.got < n {
				failed = errors.Join(failed, fmt.Errorf("%d of %d pods had an id after %s", r.got, n, o.limit))
			}
			results = append(results, r)
		}
	}
	return errors.Join(writeClaims(out, results), o.save("claims", claimLines(results)), failed)
}

// measure lets n pods claim at once.
func measure(ctx context.Context, env *suite.Suite, p protocol, n int, limit time.Duration) (r result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, setupTimeout+limit, fmt.Errorf("not done after %s", setupTimeout+limit))
	defer cancel()
	w, err := newWorkload(ctx, env, p.deployment(n))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	if err := p.prepare(ctx, w); err != nil {
		return r, err
	}
	claimants := make([]claimant, n)
	for i := range w.pods {
		if claimants[i], err = w.claimant(ctx, i); err != nil {
			return r, err
		}
	}
	before, err := readServer(ctx, env.Client)
	if err != nil {
		return r, err
	}
	used := ownCPU()
	all, took := claimAll(ctx, p, claimants, limit)
	r = result{n: n, protocol: p.name(), took: took, counts: w.count.counts(), cpu: ownCPU() - used}
	defer leaveAll(all)
	after, err := readServer(ctx, env.Client)
	if err != nil {
		return r, err
	}
	r.server = after.since(before)
	times, err := ownTimes(all)
	if err != nil {
		return r, err
	}
	slices.Sort(times)
	r.got, r.p50, r.p99 = len(times), percentile(times, 50), percentile(times, 99)
	return r, p.verify(ctx, w, all)
}

// ownTimes returns the times of those that were not stopped, or an error if any failed.
func ownTimes(all []claimed) ([]time.Duration, error) {
	times := make([]time.Duration, 0, len(all))
	failed := 0
	var first error
	for _, c := range all {
		switch {
		case c.err != nil && failed == 0:
			first = c.err
			failed++
		case c.err != nil:
			failed++
		case !c.stopped:
			times = append(times, c.took)
		}
	}
	if failed > 0 {
		return nil, fmt.Errorf("%d pods failed, one of them with: %w", failed, first)
	}
	return times, nil
}

// claimAll starts all claims at one moment and returns when the last one is over, or limit has passed.
func claimAll(ctx context.Context, p protocol, claimants []claimant, limit time.Duration) (all []claimed, took time.Duration) {
	all = make([]claimed, len(claimants))
	start := make(chan struct{})
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	var begin time.Time
	for i, c := range claimants {
		running.Go(func() {
			<-start
			id, leave, err := p.claim(limited, c)
			all[i] = claimed{pod: c.pod.Name, id: id, took: time.Since(begin), leave: leave, err: err}
			if err != nil && limited.Err() != nil && ctx.Err() == nil {
				all[i].stopped, all[i].err = true, nil
			}
		})
	}
	begin = time.Now()
	over := time.AfterFunc(limit, cancel)
	defer over.Stop()
	close(start)
	running.Wait()
	return all, time.Since(begin)
}

func leaveAll(all []claimed) {
	var running sync.WaitGroup
	for _, c := range all {
		if c.leave != nil {
			running.Go(c.leave)
		}
	}
	running.Wait()
}

// percentile is the value below which p percent of the sorted times are, zero of none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}

// verify checks that every pod has one id, that these are 0 to n-1, and that owner, id to pod, says the
// same: no write that was accepted was lost. Of pods that were stopped, owner may name some that did not
// hear of it.
func verify(all []claimed, owner map[string]string) error {
	had := map[string]bool{}
	for _, c := range all {
		if c.stopped {
			continue
		}
		key := strconv.Itoa(c.id)
		if c.id < 0 || c.id >= len(all) || owner[key] != c.pod || had[key] {
			return fmt.Errorf("%s believes that it has %d of %d, the owner says %q", c.pod, c.id, len(all), owner[key])
		}
		had[key] = true
	}
	if len(owner) < len(had) || len(owner) > len(all) || (len(had) == len(all) && len(owner) != len(all)) {
		return fmt.Errorf("the owner names %d ids for %d pods", len(owner), len(had))
	}
	return nil
}
