package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/idalloc/idalloc/test/bench/table"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// setupTimeout bounds the making of a workload and its end.
const setupTimeout = 10 * time.Minute

// claimed is what one claimant got.
type claimed struct {
	pod   string
	id    int
	leave func()
	// stopped says that the time limit came first; err is of all other failures.
	stopped bool
	err     error
}

// claims runs all protocols at all sizes. What fails is left out of the table.
func claims(ctx context.Context, env *suite.Suite, o options) (lines [][]string, failed error) {
	lines = [][]string{{"N", "protocol", "got an id", "total s", "all requests", "owner writes", "conflicts", "429", "received MB"}}
	for _, n := range o.sizes {
		for _, p := range o.protocols {
			progressf("%d pods, %s", n, p.name)
			line, err := measure(ctx, env, p, n, o.limit)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%d pods, %s: %w", n, p.name, err))
				continue
			}
			lines = append(lines, line)
		}
	}
	return lines, failed
}

// measure lets n pods claim at once.
func measure(ctx context.Context, env *suite.Suite, p protocol, n int, limit time.Duration) (line []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, setupTimeout+limit, fmt.Errorf("not done after %s", setupTimeout+limit))
	defer cancel()
	w, err := newWorkload(ctx, env, p.by.plain(n))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	if err := p.prepare(ctx, w); err != nil {
		return nil, err
	}
	claimants, err := w.claimants(ctx, w.pods)
	if err != nil {
		return nil, err
	}
	all, took := claimAll(ctx, p, claimants, limit)
	c := w.count.counts()
	defer leaveAll(all)
	got, err := having(all)
	if err != nil {
		return nil, err
	}
	if got < n && p.key != cdapKey {
		return nil, fmt.Errorf("%d of %d pods had an id after %s", got, n, limit)
	}
	owner, err := w.owner(ctx, p.key)
	if err != nil {
		return nil, err
	}
	return []string{
		strconv.Itoa(n), p.name, strconv.Itoa(got), table.Seconds(took), strconv.Itoa(c.total), strconv.Itoa(c.writes), strconv.Itoa(c.conflicts), strconv.Itoa(c.refused),
		table.Megabytes(float64(c.received)),
	}, verify(all, owner)
}

// having returns how many were not stopped, or an error if any failed.
func having(all []claimed) (got int, err error) {
	failed := 0
	for _, c := range all {
		switch {
		case c.err != nil:
			failed, err = failed+1, c.err
		case !c.stopped:
			got++
		}
	}
	if failed > 0 {
		return 0, fmt.Errorf("%d pods failed, one of them with: %w", failed, err)
	}
	return got, nil
}

// claimAll starts all claims at one moment and returns when the last one is over, or limit has passed.
func claimAll(ctx context.Context, p protocol, claimants []claimant, limit time.Duration) (all []claimed, took time.Duration) {
	all = make([]claimed, len(claimants))
	start := make(chan struct{})
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	for i, c := range claimants {
		running.Go(func() {
			<-start
			id, leave, err := p.claim(limited, c)
			all[i] = claimed{pod: c.pod.Name, id: id, leave: leave, err: err}
			if err != nil && limited.Err() != nil && ctx.Err() == nil {
				all[i].stopped, all[i].err = true, nil
			}
		})
	}
	begin := time.Now()
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
