package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/bench/program"
	"github.com/idalloc/idalloc/test/bench/table"
	"github.com/idalloc/idalloc/test/envtest/process"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	neighboursTimeout = 10 * time.Minute
	// claimers is the size of the workload that is looked at, each the size of every other one in the namespace.
	claimers, each = 5, 50
	// makers is how many pods are made at a time.
	makers = 16
)

// crowd is who else has pods in the namespace.
type crowd struct {
	name string
	pods int
	// own says that they are pods of the workload itself, beside its ReplicaSets' own.
	own bool
}

// neighbours measures what other pods in the namespace cost five pods that claim at once, one that waits, and a planner: those
// of other workloads, and as many of its own.
func neighbours(ctx context.Context, env *suite.Suite, o options) ([][]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, neighboursTimeout, fmt.Errorf("not done after %s", neighboursTimeout))
	defer cancel()
	lines := [][]string{{"other pods", "5 ids s", "received MB", "planner's peak MiB", "waiter's peak MiB"}}
	binary, err := program.Build(ctx, env.ControlPlane.Dir(), ".", "idalloc")
	if err != nil {
		return lines, err
	}
	for _, c := range []crowd{{"none", 0, false}, {"of other workloads", o.neighbours, false}, {"of its own", o.neighbours, true}} {
		progressf("%d pods, %s", c.pods, c.name)
		line, err := c.measure(ctx, env, binary)
		if err != nil {
			return lines, fmt.Errorf("%d pods, %s: %w", c.pods, c.name, err)
		}
		lines = append(lines, append([]string{strconv.Itoa(c.pods) + " " + c.name}, line...))
	}
	return lines, nil
}

func (c crowd) measure(ctx context.Context, env *suite.Suite, binary string) ([]string, error) {
	d, surge, none := idle(claimers), intstr.FromInt32(1), intstr.FromInt32(0)
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &none}
	w, err := newWorkload(ctx, env, d)
	if err != nil {
		return nil, err
	}
	defer w.wire.close() // the namespace goes with its control plane
	if err := c.move(ctx, w); err != nil {
		return nil, err
	}
	all, err := w.claimants(ctx, w.pods)
	if err != nil {
		return nil, err
	}
	had := w.count.counts()
	got, took := claimAll(ctx, protocols()[0], all, neighboursTimeout)
	sent := w.count.counts().since(had)
	defer leaveAll(got)
	if _, err := having(got); err != nil {
		return nil, err
	}
	line := []string{table.Seconds(took), table.Megabytes(float64(sent.received))}
	// The planner is there when one pod more is wanted, the waiter when a new revision begins.
	for _, change := range []func() error{
		func() error { return w.Scale(ctx, kinds.Deployment, deployment, claimers+1) }, func() error { return w.rolls(ctx) },
	} {
		if err := change(); err != nil {
			return nil, err
		}
		pod, err := w.newcomer(ctx)
		if err != nil {
			return nil, err
		}
		m, err := w.watch(ctx, binary, pod, "", func(context.Context, *process.Process) error { return nil })
		if err != nil {
			return nil, err
		}
		line = append(line, table.Decimals(m.Peak/kib, 2))
	}
	return line, nil
}

// move makes the other pods, with receipts.
func (c crowd) move(ctx context.Context, w *workload) error {
	config := rest.CopyConfig(w.env.ControlPlane.Config())
	config.QPS = -1
	s, err := store.New(config, clock.RealClock{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, makers, c.pods, func(i int) {
		if err := c.make(ctx, w, s, i); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

func (c crowd) make(ctx context.Context, w *workload, s *store.Store, i int) error {
	owner, id := fmt.Sprintf("neighbour-%03d", i/each), i%each
	if c.own {
		owner, id = deployment, claimers+1+i // one more than there will be
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			// No ReplicaSet's labels: the Deployment's selector is not theirs.
			Name: fmt.Sprintf("%s-6d5c7b9f48-%05d", owner, i), Namespace: w.Name, Labels: map[string]string{"app": owner},
		},
		Spec: *suite.PodSpec(suite.Container("main", "/bin/true")),
	}
	made, err := w.env.Client.CoreV1().Pods(w.Name).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	read, err := s.GetPod(ctx, w.Name, made.Name)
	if err != nil {
		return err
	}
	lock := receipt.Receipt{
		UID: string(made.UID), Owner: kinds.Deployment + "/" + owner, State: receipt.Locks, Share: receipt.Share{ID: id}, Write: receipt.Draw(),
	}
	_, err = s.SwapLock(ctx, read, "", lock)
	return err
}

// newcomer waits for a pod of the Deployment's that was not there, and notes it.
func (w *workload) newcomer(ctx context.Context) (name string, err error) {
	known := map[string]bool{}
	for _, pod := range w.pods {
		known[pod.Name] = true
	}
	err = w.until(ctx, func(ctx context.Context) (bool, error) {
		pods, err := w.Pods(ctx, deployment)
		for i := range pods {
			if metav1.GetControllerOfNoCopy(&pods[i]) != nil && !known[pods[i].Name] {
				name = pods[i].Name
				w.pods = append(w.pods, pods[i])
			}
		}
		return name != "", err
	})
	return name, err
}
