//go:build e2e

package main

import (
	"context"
	"errors"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/envtest/example"
)

// tolerance is that of an HPA: it leaves a difference of a tenth alone.
const tolerance = 0.1

// counter scales a Deployment as an HPA on the total load does: the load by what one pod works off, rounded up. It lowers the number only
// to the highest that it wanted in the time of stabilization.
type counter struct {
	samples []sample
	wanted  []sample
	pace
}

// sample is a value at a time.
type sample struct {
	at    time.Time
	value float64
}

// startCounter scales a workload until ctx ends. What ended it comes then.
func startCounter(ctx context.Context, c *cluster, r *rival, at pace) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- (&counter{pace: at}).run(ctx, c, r) }()
	return ended
}

func (k *counter) run(ctx context.Context, c *cluster, r *rival) error {
	tick := time.NewTicker(k.period)
	defer tick.Stop()
	scales := c.AppsV1().Deployments(r.namespace)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if r.load.Load() == nil {
			continue
		}
		scale, err := scales.GetScale(ctx, example.Scaled, metav1.GetOptions{})
		if err == nil {
			if n := k.next(time.Now(), float64(r.load.Load().Total()), int(scale.Spec.Replicas)); n != int(scale.Spec.Replicas) {
				scale.Spec.Replicas = int32(n) //nolint:gosec // a few
				_, err = scales.UpdateScale(ctx, example.Scaled, scale, metav1.UpdateOptions{})
			}
		}
		if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			return errors.Join(errors.New("count the pods"), err)
		}
	}
}

// next returns the number of pods for a total of events that was reached by now.
func (k *counter) next(now time.Time, total float64, current int) int {
	k.samples = append(since(k.samples, now.Add(-k.window)), sample{now, total})
	first := k.samples[0]
	measured := now.Sub(first.at)
	if measured < k.window/2 {
		return current
	}
	used := (total - first.value) / measured.Seconds() / capacity
	want := current
	if math.Abs(used/float64(current)-1) > tolerance {
		want = max(fewest, int(math.Ceil(used)))
	}
	k.wanted = append(since(k.wanted, now.Add(-k.afterDown)), sample{now, float64(want)})
	if want >= current {
		return want
	}
	for _, w := range k.wanted {
		want = max(want, int(w.value))
	}
	return min(want, current)
}

// since leaves out what is older.
func since(samples []sample, oldest time.Time) []sample {
	for len(samples) > 0 && samples[0].at.Before(oldest) {
		samples = samples[1:]
	}
	return samples
}
