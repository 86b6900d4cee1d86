package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/bench/table"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	propagationTimeout = 15 * time.Minute
	// quietLooks is for how many looks in a row no watcher may send anything before a round begins.
	quietLooks = 10
)

// propagation measures how long news takes to become an instance's identity. All times are from a write being sent.
func propagation(ctx context.Context, env *suite.Suite, o options) ([][]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, propagationTimeout, fmt.Errorf("not done after %s", propagationTimeout))
	defer cancel()
	lines := [][]string{{"from", "instances", "samples", "p50 s", "p99 s", "max s"}}
	for _, part := range []struct {
		what    string
		measure func(context.Context, *workload, int, int) ([]time.Duration, error)
	}{{"scale write to publication", publications}, {"pod's end to successor's publication", replacements}} {
		progressf("%s, %d rounds", part.what, o.rounds)
		times, err := measured(ctx, env, o, part.measure)
		if err != nil {
			return lines, fmt.Errorf("%s: %w", part.what, err)
		}
		slices.Sort(times)
		line := []string{part.what, strconv.Itoa(o.observers), strconv.Itoa(len(times))}
		for _, p := range []int{50, 99, 100} {
			line = append(line, table.Seconds(table.Percentile(times, p)))
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func measured(ctx context.Context, env *suite.Suite, o options, measure func(context.Context, *workload, int, int) ([]time.Duration, error)) (times []time.Duration, err error) {
	w, err := newWorkload(ctx, env, idle(o.observers))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	return measure(ctx, w, o.observers, o.rounds)
}

// publications measures until each of n instances has published a new count.
func publications(ctx context.Context, w *workload, n, rounds int) (times []time.Duration, err error) {
	var log history
	p, err := play(ctx, w, false, log.see, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	calm := func(count int) error { return errors.Join(p.ready(ctx, count), w.quiet(ctx)) }
	if err := calm(n); err != nil {
		return nil, err
	}
	for round := range rounds {
		count := n + 1 - round%2
		pods, sent := log.holders(), time.Now()
		if err := w.Scale(ctx, "Deployment", deployment, int32(count)); err != nil { //nolint:gosec // a few thousand
			return nil, err
		}
		if err := calm(count); err != nil {
			return nil, err
		}
		err := w.until(ctx, func(context.Context) (bool, error) {
			took, missing := log.published(pods, count, sent)
			if missing == 0 {
				times = append(times, took...)
			}
			return missing == 0, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return times, nil
}

// replacements measures from the removal of a crashed pod's object to its successor, which has been waiting, having published the id.
func replacements(ctx context.Context, w *workload, n, rounds int) (times []time.Duration, err error) {
	var log history
	p, err := play(ctx, w, true, log.see, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := p.ready(ctx, n); err != nil {
		return nil, err
	}
	for range rounds {
		victim := log.holders()[0]
		if err := w.crash(ctx, p, victim, n); err != nil {
			return nil, err
		}
		sent := time.Now()
		if err := errors.Join(p.Remove(ctx, victim), p.ready(ctx, n)); err != nil {
			return nil, err
		}
		times = append(times, log.firstTaken(sent).Sub(sent))
	}
	return times, nil
}

// crash deletes a pod, whose object stays, and waits until its successor waits too.
func (w *workload) crash(ctx context.Context, p *player, victim string, n int) error {
	pods := w.env.Client.CoreV1().Pods(w.Name)
	if err := pods.Delete(ctx, victim, metav1.DeleteOptions{}); err != nil {
		return err
	}
	err := w.until(ctx, func(ctx context.Context) (bool, error) {
		all, err := w.Pods(ctx, deployment)
		return len(all) == n+1, errors.Join(err, p.Err())
	})
	if err != nil {
		return err
	}
	return w.quiet(ctx)
}

// quiet waits until the workload's pods have sent nothing for a second.
func (w *workload) quiet(ctx context.Context) error {
	looks, last := 0, -1
	return w.until(ctx, func(context.Context) (bool, error) {
		if total := w.count.counts().total; total != last {
			looks, last = 0, total
		}
		looks++
		return looks > quietLooks, nil
	})
}

// holders returns the pods that hold an id, in the order in which they took it.
func (h *history) holders() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var pods []string
	for _, s := range h.seen {
		at := slices.Index(pods, s.pod)
		switch {
		case s.id.Assigned() && at < 0:
			pods = append(pods, s.pod)
		case !s.id.Assigned() && !s.started && at >= 0:
			pods = slices.Delete(pods, at, at+1)
		}
	}
	return pods
}

// published returns how long after sent each of the pods first published count, and how many did not yet.
// A pod that has ended does not count.
func (h *history) published(pods []string, count int, sent time.Time) (times []time.Duration, missing int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := map[string]time.Time{}
	ended := map[string]bool{}
	for _, s := range h.seen {
		if s.ended {
			ended[s.pod] = true
		}
		if s.at.After(sent) && s.id.Assigned() && s.id.Count == count && first[s.pod].IsZero() {
			first[s.pod] = s.at
		}
	}
	for _, pod := range pods {
		switch at, ok := first[pod]; {
		case ok:
			times = append(times, at.Sub(sent))
		case !ended[pod]:
			missing++
		}
	}
	return times, missing
}

// firstTaken returns when an id was first published by a pod that had none before, after sent.
func (h *history) firstTaken(sent time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	had := map[string]bool{}
	for _, s := range h.seen {
		if s.id.Assigned() && s.at.After(sent) && !had[s.pod] {
			return s.at
		}
		had[s.pod] = had[s.pod] || s.id.Assigned()
	}
	return sent
}
