package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/idalloc/idalloc/test/bench/table"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// restartTimeout bounds one restart.
const restartTimeout = 15 * time.Minute

// carefulShare is which part of the replicas the strategy that keeps every pod restarts. It hands one id over after the
// other, each with two writes and several of the Deployment's status, and each of these goes with all ids to all pods.
const carefulShare = 5

// restart measures a rolling restart with the usual strategy, and of fewer replicas with one that keeps every pod.
func restart(ctx context.Context, env *suite.Suite, o options) (lines [][]string, failed error) {
	lines = [][]string{{
		"strategy", "planned by", "replicas", "total s", "owner writes", "conflicts", "requests", "all events MB", "received MB", "wait p50 s", "wait max s",
	}}
	for _, run := range []struct {
		unavailable string
		replicas    int
	}{{o.unavailable, o.restart}, {"0", max(1, o.restart/carefulShare)}} {
		for _, by := range o.planners {
			progressf("restart of %d, maxUnavailable %s, planned by %s", run.replicas, run.unavailable, by)
			line, err := restartOne(ctx, env, by, run.replicas, run.unavailable)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("maxUnavailable %s, planned by %s: %w", run.unavailable, by, err))
				continue
			}
			lines = append(lines, append([]string{"maxUnavailable " + run.unavailable, string(by), strconv.Itoa(run.replicas)}, line...))
		}
	}
	return lines, failed
}

func restartOne(ctx context.Context, env *suite.Suite, by planner, n int, unavailable string) (line []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, restartTimeout, fmt.Errorf("not done after %s", restartTimeout))
	defer cancel()
	d, surge, most := by.plain(n), intstr.FromString("25%"), intstr.Parse(unavailable)
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &most}
	w, err := newWorkload(ctx, env, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	var log history
	see := log.see
	if by == byNone {
		see = nil
	}
	p, err := play(ctx, w, false, see, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := p.ready(ctx, n); err != nil {
		return nil, err
	}
	progressf("all are ready; the restart begins")
	before, from := w.count.counts(), time.Now()
	sent, err := events(ctx, w.env.Client)
	if err != nil {
		return nil, err
	}
	if err := w.renew(ctx, p, n); err != nil {
		return nil, err
	}
	took, c := time.Since(from), w.count.counts().since(before)
	all, err := events(ctx, w.env.Client)
	if err != nil {
		return nil, err
	}
	if err := p.ready(ctx, n); err != nil {
		return nil, err
	}
	waits := log.waits(from)
	return []string{
		table.Seconds(took), strconv.Itoa(c.writes), strconv.Itoa(c.conflicts), strconv.Itoa(c.total), table.Megabytes(all - sent), table.Megabytes(float64(c.received)),
		table.Seconds(table.Percentile(waits, 50)), table.Seconds(table.Percentile(waits, 100)),
	}, nil
}

// renew has all n pods replaced, and returns when the new ones are ready.
func (w *workload) renew(ctx context.Context, p *player, n int) error {
	if err := w.rolls(ctx); err != nil {
		return err
	}
	return w.until(ctx, func(ctx context.Context) (bool, error) {
		d, err := w.env.Client.AppsV1().Deployments(w.Name).Get(ctx, deployment, metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration != d.Generation {
			return false, err
		}
		s := d.Status
		return int(s.UpdatedReplicas) == n && int(s.Replicas) == n && int(s.ReadyReplicas) == n, p.Err()
	})
}

// rolls begins a new revision.
func (w *workload) rolls(ctx context.Context) error {
	_, err := w.env.Client.AppsV1().Deployments(w.Name).Patch(ctx, deployment, types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"annotations":{"bench.idalloc.dev/restarted":"yes"}}}}}`), metav1.PatchOptions{})
	return err
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

// waits returns, sorted, how long ids had no holder while the next one was running. It counts ids that went to another pod after from.
func (h *history) waits(from time.Time) (waits []time.Duration) {
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
			if started[s.pod].After(at) {
				at = started[s.pod]
			}
			waits = append(waits, s.at.Sub(at))
		}
		delete(freed, s.id.ID)
	}
	slices.Sort(waits)
	return waits
}
