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

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

// restartTimeout bounds one restart.
const restartTimeout = 15 * time.Minute

// rolled is what one rolling restart gave.
type rolled struct {
	strategy string
	planner  planner
	replicas int
	took     time.Duration
	counts   counts
	server   server
	// waits has, for each time that an id went to another pod, how long both were there and not
	// together: the id free, its next holder running.
	waits []time.Duration
	// gaps has how long the ids had no holder at all.
	gaps []time.Duration
}

// carefulShare is which part of the replicas the strategy that keeps every pod restarts. It hands one id over after the
// other, each with two writes and several of the Deployment's status, and each of these goes with all ids to all pods.
const carefulShare = 5

// restart measures a rolling restart with the usual strategy, and of fewer replicas with one that keeps every pod.
func restart(ctx context.Context, env *suite.Suite, o options, out, progress io.Writer) error {
	lines := [][]string{{
		"strategy", "planned by", "replicas", "total s", "owner writes", "conflicts", "requests", "all events MB", "received MB", "server CPU s", "wait p50 s", "wait max s", "gap max s",
	}}
	var failed error
	for _, run := range []struct {
		unavailable string
		replicas    int
	}{{"25%", o.restart}, {"0", max(1, o.restart/carefulShare)}} {
		for _, by := range o.planners {
			if _, err := fmt.Fprintf(progress, "restart of %d, maxUnavailable %s, planned by %s\n", run.replicas, run.unavailable, by); err != nil {
				return err
			}
			r, err := restartOne(ctx, env, by, run.replicas, run.unavailable, progress)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("maxUnavailable %s, planned by %s: %w", run.unavailable, by, err))
				continue
			}
			lines = append(lines, r.line())
		}
	}
	return errors.Join(writeTable(out, "Rolling restart, maxSurge 25%", lines), o.save("restart", lines), failed)
}

func (r rolled) line() []string {
	return []string{
		r.strategy, string(r.planner), strconv.Itoa(r.replicas), seconds(r.took), strconv.Itoa(r.counts.writes), strconv.Itoa(r.counts.conflicts), strconv.Itoa(r.counts.total),
		megabytes(r.server.events), megabytes(float64(r.counts.received)), decimals(r.server.cpu),
		seconds(percentile(r.waits, 50)), seconds(percentile(r.waits, 100)), seconds(percentile(r.gaps, 100)),
	}
}

func restartOne(ctx context.Context, env *suite.Suite, by planner, n int, unavailable string, progress io.Writer) (r rolled, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, restartTimeout, fmt.Errorf("not done after %s", restartTimeout))
	defer cancel()
	d, surge, most := by.mark(plain(n)), intstr.FromString("25%"), intstr.Parse(unavailable)
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &most}
	w, err := newWorkload(ctx, env, d)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	var log history
	p, err := play(ctx, w, false, log.see)
	if err != nil {
		return r, err
	}
	defer p.finish()
	if err := p.ready(ctx, n); err != nil {
		return r, err
	}
	if _, err := fmt.Fprintln(progress, "all are ready; the restart begins"); err != nil {
		return r, err
	}
	r, err = w.restart(ctx, p, &log, n, unavailable)
	r.planner = by
	return r, err
}

// restart restarts a workload that is ready and returns when it is so again.
func (w *workload) restart(ctx context.Context, p *player, log *history, n int, strategy string) (r rolled, err error) {
	r.strategy, r.replicas = "maxUnavailable "+strategy, n
	before, from := w.count.counts(), time.Now()
	served, err := readServer(ctx, w.env.Client)
	if err != nil {
		return r, err
	}
	if err := w.renew(ctx, p, n); err != nil {
		return r, err
	}
	r.took = time.Since(from)
	after, err := readServer(ctx, w.env.Client)
	if err != nil {
		return r, err
	}
	r.server, r.counts = after.since(served), w.count.counts().since(before)
	if err := p.ready(ctx, n); err != nil {
		return r, err
	}
	r.gaps, r.waits = log.gaps(from)
	return r, nil
}

// renew has all n pods replaced, and returns when the new ones are ready.
func (w *workload) renew(ctx context.Context, p *player, n int) error {
	if err := w.rolls(ctx); err != nil {
		return err
	}
	return w.until(ctx, func(ctx context.Context) (bool, error) {
		d, err := w.env.Client.AppsV1().Deployments(w.Name).Get(ctx, w.deployment, metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration != d.Generation {
			return false, err
		}
		s := d.Status
		return int(s.UpdatedReplicas) == n && int(s.Replicas) == n && int(s.ReadyReplicas) == n, p.failed()
	})
}

// history keeps what the instances did.
type history struct {
	mu   sync.Mutex
	seen []sighting
}

func (h *history) see(s sighting) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, s)
}

// gaps returns, sorted, how long ids had no holder when they went to another pod after from, and how much
// of that their next holder was running.
func (h *history) gaps(from time.Time) (gaps, waits []time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortStableFunc(h.seen, func(a, b sighting) int { return a.at.Compare(b.at) })
	started, holds, freed := map[string]time.Time{}, map[string]int{}, map[int]time.Time{}
	for _, s := range h.seen {
		id, held := holds[s.pod]
		switch {
		case s.started:
			started[s.pod] = s.at
			continue
		case held && (!s.id.Assigned() || s.id.ID != id):
			freed[id] = s.at
			delete(holds, s.pod)
		}
		if !s.id.Assigned() || (held && s.id.ID == id) {
			continue
		}
		holds[s.pod] = s.id.ID
		if at, was := freed[s.id.ID]; was && s.at.After(from) {
			gaps = append(gaps, s.at.Sub(at))
			if started[s.pod].After(at) {
				at = started[s.pod]
			}
			waits = append(waits, s.at.Sub(at))
		}
		delete(freed, s.id.ID)
	}
	slices.Sort(gaps)
	slices.Sort(waits)
	return gaps, waits
}

// since returns what came after before.
func (c counts) since(before counts) counts {
	c.total -= before.total
	c.writes -= before.writes
	c.conflicts -= before.conflicts
	c.refused -= before.refused
	c.sent -= before.sent
	c.received -= before.received
	return c
}
