package main

import (
	"context"
	"fmt"
	"net"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	deployment = "worker"
	// poll is how often the control plane is asked whether it is ready for a run.
	poll = 100 * time.Millisecond
)

// workload is a Deployment with pods that nobody runs.
type workload struct {
	*suite.Namespace
	env  *suite.Suite
	pods []string
}

// newWorkload creates a Deployment and waits until all its pods exist and the controllers are done.
func newWorkload(ctx context.Context, env *suite.Suite, n int) (*workload, error) {
	rules := suite.Rules()
	rules[0].Verbs = append(rules[0].Verbs, "update") // for CDAP's protocol
	ns, err := env.NewNamespace(ctx, rules...)
	if err != nil {
		return nil, err
	}
	w := &workload{Namespace: ns, env: env}
	spec := suite.PodSpec(suite.Container("main", "/bin/true"))
	if err := w.Create(ctx, suite.Deployment(deployment, int32(n), spec)); err != nil { //nolint:gosec // a few hundred
		return nil, err
	}
	return w, wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		d, err := env.Client.AppsV1().Deployments(w.Name).Get(ctx, deployment, metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration != d.Generation || int(d.Status.UpdatedReplicas) != n {
			return false, err
		}
		pods, err := w.Pods(ctx, deployment)
		w.pods = w.pods[:0]
		for _, pod := range pods {
			w.pods = append(w.pods, pod.Name)
		}
		return len(pods) == n, err
	})
}

// remove deletes the workload and waits until its pods are gone, so that its end does not disturb the
// next run.
func (w *workload) remove(ctx context.Context) error {
	if err := w.Delete(ctx); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		pods, err := w.Pods(ctx, deployment)
		return len(pods) == 0, err
	})
}

// claimant returns what stands for a pod. Its connection is its own: client-go would share one between
// equal configurations.
func (w *workload) claimant(ctx context.Context, pod string, count *requests) (claimant, error) {
	config, err := w.Config(ctx)
	if err != nil {
		return claimant{}, err
	}
	config.Dial = (&net.Dialer{}).DialContext
	transport, err := rest.TransportFor(config)
	if err != nil {
		return claimant{}, fmt.Errorf("connection of %s: %w", pod, err)
	}
	// With the transport made here, all clients that a claimant makes of it use the one connection, as
	// they do in a process of their own.
	own := &rest.Config{Host: config.Host, Transport: count.wrap(transport), QPS: -1}
	return claimant{namespace: w.Name, deployment: deployment, pod: pod, config: own}, nil
}

// annotation returns an annotation of the Deployment.
func (w *workload) annotation(ctx context.Context, key string) (string, error) {
	d, err := w.env.Client.AppsV1().Deployments(w.Name).Get(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return d.Annotations[key], nil
}
