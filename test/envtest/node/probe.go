package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// watchHealth probes a running container until ctx ends.
func (c *container) watchHealth(ctx context.Context) {
	if !c.awaitStartup(ctx) {
		return
	}
	c.setStarted()
	// Readiness is probed while the pod terminates, too, as a kubelet does.
	c.probeLoop(ctx, c.spec.ReadinessProbe, func(healthy bool) bool {
		c.setReady(healthy)
		return true
	})
}

// awaitStartup returns true when the container has started.
func (c *container) awaitStartup(ctx context.Context) (started bool) {
	if c.spec.StartupProbe == nil {
		return true
	}
	c.probeLoop(ctx, c.spec.StartupProbe, func(healthy bool) bool {
		started = healthy
		return !healthy
	})
	return started
}

// probeLoop probes until ctx ends or report returns false. report gets every
// result that has reached its threshold.
func (c *container) probeLoop(ctx context.Context, probe *corev1.Probe, report func(healthy bool) bool) {
	if probe == nil || !pause(ctx, seconds(probe.InitialDelaySeconds)) {
		return
	}
	period := c.pod.node.options.ProbePeriod
	if period == 0 {
		period = seconds(max(1, probe.PeriodSeconds))
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	var successes, failures int32
	for {
		healthy := c.probeOnce(ctx, probe)
		if ctx.Err() != nil {
			return
		}
		if healthy {
			successes, failures = successes+1, 0
		} else {
			successes, failures = 0, failures+1
		}
		if successes >= max(1, probe.SuccessThreshold) || failures >= max(1, probe.FailureThreshold) {
			if !report(healthy) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *container) probeOnce(ctx context.Context, probe *corev1.Probe) bool {
	ctx, cancel := context.WithTimeout(ctx, seconds(max(1, probe.TimeoutSeconds)))
	defer cancel()
	var err error
	switch {
	case probe.Exec != nil:
		err = c.exec(ctx, probe.Exec.Command)
	case probe.HTTPGet != nil:
		err = c.httpGet(ctx, probe.HTTPGet)
	default:
		err = errUnknownHandler
	}
	if err != nil {
		c.pod.log.V(1).Info("probe failed", "container", c.spec.Name, "why", err.Error())
	}
	return err == nil
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// pause waits and says whether ctx is still there.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
