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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	propagationTimeout = 15 * time.Minute
	// quietLooks is for how many looks in a row no watcher may send anything before a round begins.
	quietLooks = 10
)

// delays are the times of one kind, each from a write being sent.
type delays struct {
	what  string
	times []time.Duration
}

// propagation measures how long news takes to become an instance's identity, and to reach a bare watch.
func propagation(ctx context.Context, env *suite.Suite, o options, out, progress io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, propagationTimeout, fmt.Errorf("not done after %s", propagationTimeout))
	defer cancel()
	if _, err := fmt.Fprintf(progress, "propagation to %d instances, %d rounds\n", o.observers, o.rounds); err != nil {
		return err
	}
	scaled, err := scaleWrites(ctx, env, o.observers, o.rounds)
	if err != nil {
		return fmt.Errorf("scale writes: %w", err)
	}
	replaced, err := replacements(ctx, env, o.observers, o.rounds)
	if err != nil {
		return fmt.Errorf("replaced pods: %w", err)
	}
	lines := [][]string{{"from", "samples", "p50 s", "p99 s", "max s"}}
	for _, d := range append(scaled, replaced) {
		slices.Sort(d.times)
		line := []string{d.what, strconv.Itoa(len(d.times))}
		for _, p := range []int{50, 99, 100} {
			line = append(line, seconds(percentile(d.times, p)))
		}
		lines = append(lines, line)
	}
	return errors.Join(writeTable(out, fmt.Sprintf("Propagation, %d instances", o.observers), lines), o.save("propagation", lines))
}

// scaleWrites measures from a scale write to each instance having published the new count, and then to as
// many bare watches of the same Deployment.
func scaleWrites(ctx context.Context, env *suite.Suite, n, rounds int) (all []delays, err error) {
	w, err := newWorkload(ctx, env, plain(n))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	published, err := scaleInstances(ctx, w, n, rounds)
	if err != nil {
		return nil, err
	}
	heard, err := scaleWatches(ctx, w, n, rounds)
	return []delays{{"scale write to publication", published}, {"scale write to bare watch", heard}}, err
}

func scaleInstances(ctx context.Context, w *workload, n, rounds int) (times []time.Duration, err error) {
	var log history
	p, err := play(ctx, w, false, log.see)
	if err != nil {
		return nil, err
	}
	defer p.finish()
	if err := p.ready(ctx, n); err != nil {
		return nil, err
	}
	for round := range rounds {
		if err := w.quiet(ctx); err != nil {
			return nil, err
		}
		count := n + 1 - round%2 // up by one and down again
		pods, sent := log.holders(), time.Now()
		if err := w.Scale(ctx, "Deployment", w.deployment, int32(count)); err != nil { //nolint:gosec // a few thousand
			return nil, err
		}
		if err := p.ready(ctx, count); err != nil {
			return nil, err
		}
		err := w.until(ctx, func(context.Context) (bool, error) {
			took, missing := log.published(pods, count, sent)
			if missing == 0 {
				times = append(times, took...)
			}
			return missing == 0, p.failed()
		})
		if err != nil {
			return nil, err
		}
	}
	return times, nil
}

// scaleWatches does the same with bare watches. No pod claims.
func scaleWatches(ctx context.Context, w *workload, n, rounds int) (times []time.Duration, err error) {
	watching, stop := context.WithCancel(ctx)
	var mu sync.Mutex
	heard := make([]map[int]time.Time, n) // by watch: when it first saw a count
	ended := make([]<-chan error, 0, n)
	defer func() {
		stop()
		for _, e := range ended {
			err = errors.Join(err, <-e)
		}
	}()
	for i := range heard {
		heard[i] = map[int]time.Time{}
		config, err := w.connection(ctx)
		if err != nil {
			return nil, err
		}
		e, err := w.bareWatch(watching, config, func(at time.Time, replicas int) {
			mu.Lock()
			defer mu.Unlock()
			if heard[i][replicas].IsZero() {
				heard[i][replicas] = at
			}
		})
		if err != nil {
			return nil, err
		}
		ended = append(ended, e)
	}
	for round := range rounds {
		count := n + 1 - round%2
		mu.Lock()
		for i := range heard {
			delete(heard[i], count)
		}
		mu.Unlock()
		sent := time.Now()
		if err := w.Scale(ctx, "Deployment", w.deployment, int32(count)); err != nil { //nolint:gosec // a few thousand
			return nil, err
		}
		err := w.until(ctx, func(context.Context) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			var took []time.Duration
			for i := range heard {
				at, ok := heard[i][count]
				if !ok {
					return false, nil
				}
				took = append(took, at.Sub(sent))
			}
			times = append(times, took...)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
		if err := w.settle(ctx, count); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// replacements measures from the removal of a crashed pod's object to its successor, which has been waiting, having published the id.
func replacements(ctx context.Context, env *suite.Suite, n, rounds int) (taken delays, err error) {
	taken.what = "pod's end to successor's publication"
	w, err := newWorkload(ctx, env, plain(n))
	if err != nil {
		return taken, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	var log history
	p, err := play(ctx, w, true, log.see)
	if err != nil {
		return taken, err
	}
	defer p.finish()
	if err := p.ready(ctx, n); err != nil {
		return taken, err
	}
	for range rounds {
		victim := log.holders()[0]
		if err := w.crash(ctx, p, victim, n); err != nil {
			return taken, err
		}
		now, sent := int64(0), time.Now()
		if err := w.env.Client.CoreV1().Pods(w.Name).Delete(ctx, victim, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return taken, err
		}
		if err := p.ready(ctx, n); err != nil {
			return taken, err
		}
		taken.times = append(taken.times, log.firstTaken(sent).Sub(sent))
	}
	return taken, nil
}

// crash deletes a pod, whose object stays, and waits until its successor waits too.
func (w *workload) crash(ctx context.Context, p *player, victim string, n int) error {
	pods := w.env.Client.CoreV1().Pods(w.Name)
	if err := pods.Delete(ctx, victim, metav1.DeleteOptions{}); err != nil {
		return err
	}
	err := w.until(ctx, func(ctx context.Context) (bool, error) {
		all, err := w.Pods(ctx, w.deployment)
		return len(all) == n+1, errors.Join(err, p.failed())
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
