package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

// result is what one run gave.
type result struct {
	n        int
	protocol string
	// took is the time until the last pod had its id; p50 and p99 are of the pods' own times.
	took, p50, p99 time.Duration
	// counts are the requests until then.
	counts counts
}

// claimed is what one claimant got.
type claimed struct {
	pod   string
	id    int
	took  time.Duration
	leave func()
	err   error
}

// measure lets n pods claim at once.
func measure(ctx context.Context, env *suite.Suite, p protocol, n int, timeout time.Duration) (r result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done after %s", timeout))
	defer cancel()
	w, err := newWorkload(ctx, env, n)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	count := &requests{verbs: map[string]int{}}
	claimants := make([]claimant, n)
	for i, pod := range w.pods {
		if claimants[i], err = w.claimant(ctx, pod, count); err != nil {
			return r, err
		}
	}
	all, took := claimAll(ctx, p, claimants)
	r = result{n: n, protocol: p.name(), took: took, counts: count.counts()}
	defer leaveAll(all)
	times := make([]time.Duration, 0, n)
	for _, c := range all {
		err = errors.Join(err, c.err)
		times = append(times, c.took)
	}
	if err != nil {
		return r, err
	}
	slices.Sort(times)
	r.p50, r.p99 = percentile(times, 50), percentile(times, 99)
	text, err := w.annotation(ctx, p.key())
	if err != nil {
		return r, err
	}
	return r, verify(all, text)
}

// claimAll starts all claims at one moment and returns when the last one is over.
func claimAll(ctx context.Context, p protocol, claimants []claimant) (all []claimed, took time.Duration) {
	all = make([]claimed, len(claimants))
	start := make(chan struct{})
	var running sync.WaitGroup
	var begin time.Time
	for i, c := range claimants {
		running.Go(func() {
			<-start
			id, leave, err := p.claim(ctx, c)
			all[i] = claimed{pod: c.pod, id: id, took: time.Since(begin), leave: leave, err: err}
		})
	}
	begin = time.Now()
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

// percentile is the value below which p percent of the sorted times are.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)*p+99)/100-1]
}

// verify checks that every pod has one id, that these are 0 to n-1, and that the Deployment says the
// same: no write that was accepted was lost.
func verify(all []claimed, annotation string) error {
	var owner map[string]string
	if err := json.Unmarshal([]byte(annotation), &owner); err != nil {
		return fmt.Errorf("the Deployment's annotation: %w", err)
	}
	if len(owner) != len(all) {
		return fmt.Errorf("the Deployment names %d ids for %d pods", len(owner), len(all))
	}
	for _, c := range all {
		// As many ids as pods, each id below that number, and the owner agrees with each pod: then no
		// id and no pod can be there twice.
		if c.id < 0 || c.id >= len(all) || owner[strconv.Itoa(c.id)] != c.pod {
			return fmt.Errorf("%s believes that it has %d of %d, the Deployment says %q", c.pod, c.id, len(all), owner[strconv.Itoa(c.id)])
		}
	}
	return nil
}
