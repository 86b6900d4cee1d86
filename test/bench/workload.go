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

	"github.com/idalloc/idalloc/pkg/allocator/store"
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
	env        *suite.Suite
	deployment string
	pods       []corev1.Pod
	count      *requests
	wire       *wire
	// controller plans for the pods. It is nil if they do so themselves.
	controller *program.Controller
}

// plain returns the usual Deployment.
func plain(n int) *appsv1.Deployment { return idle(deployment, n) }

// idle returns a Deployment whose pods do nothing.
func idle(name string, n int) *appsv1.Deployment {
	return suite.Deployment(name, int32(n), suite.PodSpec(suite.Container("main", "/bin/true"))) //nolint:gosec // a few thousand
}

// newWorkload creates a Deployment and waits until all its pods exist and the controllers are done.
func newWorkload(ctx context.Context, env *suite.Suite, d *appsv1.Deployment) (*workload, error) {
	rules := suite.Rules()
	rules[0].Verbs = append(rules[0].Verbs, "update") // for CDAP's protocol
	if agents(d) {
		rules = agentRules()
	}
	ns, err := env.NewNamespace(ctx, rules...)
	if err != nil {
		return nil, err
	}
	w := &workload{Namespace: ns, env: env, deployment: d.Name, count: &requests{}}
	w.wire = &wire{count: w.count}
	if agents(d) {
		if err := w.control(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.Create(ctx, d); err != nil {
		return nil, err
	}
	if err := w.settle(ctx, int(*d.Spec.Replicas)); err != nil {
		return nil, err
	}
	return w, nil
}

// settle waits until there are n pods and the controllers are done.
func (w *workload) settle(ctx context.Context, n int) error {
	return wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		d, err := w.env.Client.AppsV1().Deployments(w.Name).Get(ctx, w.deployment, metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration != d.Generation || int(d.Status.UpdatedReplicas) != n {
			return false, err
		}
		w.pods, err = w.Pods(ctx, w.deployment)
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
	return wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
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

// claimant returns what stands for a pod.
func (w *workload) claimant(ctx context.Context, index int) (claimant, error) {
	pod := &w.pods[index]
	config, err := w.connection(ctx)
	if err != nil {
		return claimant{}, fmt.Errorf("connection of %s: %w", pod.Name, err)
	}
	return claimant{namespace: w.Name, deployment: w.deployment, pod: pod, config: config}, nil
}

func (w *workload) ref() store.Ref { return ref(w.Name, w.deployment) }

func (c claimant) ref() store.Ref { return ref(c.namespace, c.deployment) }

func ref(namespace, name string) store.Ref {
	return store.Ref{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: store.Deployment, Namespace: namespace, Name: name}
}

// annotations returns those of the Deployment.
func (w *workload) annotations(ctx context.Context) (map[string]string, error) {
	d, err := w.env.Client.AppsV1().Deployments(w.Name).Get(ctx, w.deployment, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return d.Annotations, nil
}

// verifyMap verifies all against an annotation of the Deployment: a JSON object, id to pod.
func (w *workload) verifyMap(ctx context.Context, key string, all []claimed) error {
	annotations, err := w.annotations(ctx)
	if err != nil {
		return err
	}
	owner := map[string]string{}
	if text := annotations[key]; text != "" {
		if err := json.Unmarshal([]byte(text), &owner); err != nil {
			return fmt.Errorf("the Deployment's annotation: %w", err)
		}
	}
	return verify(all, owner)
}

// until asks again and again, until ready says so.
func (w *workload) until(ctx context.Context, ready func(context.Context) (bool, error)) error {
	return wait.PollUntilContextCancel(ctx, poll, true, ready)
}
