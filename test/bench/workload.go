package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/bench/played"
	"github.com/idalloc/idalloc/test/bench/program"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	deployment = "worker"
	// poll is how often the control plane is asked whether it is ready for a run.
	poll = 100 * time.Millisecond
)

// workload is a Deployment with pods that no kubelet runs.
type workload struct {
	*suite.Namespace
	env   *suite.Suite
	pods  []corev1.Pod
	count *requests
	wire  *wire
	// controller plans for the pods. It is nil if they do so themselves.
	controller *program.Controller
}

// idle returns a Deployment whose pods do nothing.
func idle(n int) *appsv1.Deployment {
	return suite.Deployment(deployment, int32(n), suite.PodSpec(suite.Container("main", "/bin/true"))) //nolint:gosec // a few thousand
}

// newWorkload creates a Deployment and waits until all its pods exist and the controllers are done.
func newWorkload(ctx context.Context, env *suite.Suite, d *appsv1.Deployment) (*workload, error) {
	rules, agents := suite.Rules(), d.Spec.Template.Labels[receipt.AssignLabel] == receipt.ByAgent
	rules[0].Verbs = append(rules[0].Verbs, "update") // for CDAP's protocol
	if agents {
		rules = played.AgentRules()
	}
	ns, err := env.NewNamespace(ctx, rules...)
	if err != nil {
		return nil, err
	}
	w := &workload{Namespace: ns, env: env, count: &requests{}}
	w.wire = &wire{count: w.count}
	if agents {
		if w.controller, err = program.For(ctx, env.ControlPlane, w.Name); err != nil {
			return nil, err
		}
	}
	if err := w.Create(ctx, d); err != nil {
		return nil, err
	}
	err = w.settle(ctx, int(*d.Spec.Replicas))
	return w, err
}

// settle waits until there are n pods and the controllers are done.
func (w *workload) settle(ctx context.Context, n int) error {
	return w.until(ctx, func(ctx context.Context) (bool, error) {
		d, err := w.env.Client.AppsV1().Deployments(w.Name).Get(ctx, deployment, metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration != d.Generation || int(d.Status.UpdatedReplicas) != n {
			return false, err
		}
		w.pods, err = w.Pods(ctx, deployment)
		return len(w.pods) == n, err
	})
}

// remove deletes the workload and waits until its namespace is gone, so that its end does not disturb
// the next run.
func (w *workload) remove(ctx context.Context) error {
	w.wire.close()
	if w.controller != nil {
		w.controller.Stop()
	}
	if err := w.Delete(ctx); err != nil {
		return err
	}
	return w.until(ctx, func(ctx context.Context) (bool, error) {
		_, err := w.env.Client.CoreV1().Namespaces().Get(ctx, w.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// connection returns what a process of its own would have: a token, a transport and a connection that
// no other process shares.
func (w *workload) connection(ctx context.Context) (*rest.Config, error) {
	config, err := w.Config(ctx)
	if err != nil {
		return nil, err
	}
	config.Dial = w.wire.dial // client-go shares connections between configurations without one
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	// With the transport made here, all clients that are made of it use the one connection.
	return &rest.Config{Host: config.Host, Transport: w.count.wrap(transport), QPS: -1}, nil
}

// claimants returns what stands for pods.
func (w *workload) claimants(ctx context.Context, pods []corev1.Pod) (all []claimant, err error) {
	for i := range pods {
		config, err := w.connection(ctx)
		if err != nil {
			return nil, fmt.Errorf("connection of %s: %w", pods[i].Name, err)
		}
		all = append(all, claimant{w, &pods[i], config})
	}
	return all, nil
}

func (w *workload) ref() kinds.Ref {
	return kinds.Ref{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kinds.Deployment, Namespace: w.Name, Name: deployment}
}

// owner returns which pod has which id by an annotation of the Deployment.
func (w *workload) owner(ctx context.Context, key string) (map[string]string, error) {
	d, err := w.env.Client.AppsV1().Deployments(w.Name).Get(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return mapOf(d, key)
}

func mapOf(d *appsv1.Deployment, key string) (map[string]string, error) {
	owner := map[string]string{}
	if text := d.Annotations[key]; text != "" {
		if err := json.Unmarshal([]byte(text), &owner); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", key, err)
		}
	}
	return owner, nil
}

// until asks again and again, until ready says so.
func (w *workload) until(ctx context.Context, ready func(context.Context) (bool, error)) error {
	return wait.PollUntilContextCancel(ctx, poll, true, ready)
}
