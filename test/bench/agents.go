package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/bench/program"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// planner says who plans for the pods of a workload: they themselves, or the controller, whose agents they are then.
type planner string

const (
	byPeers      planner = "peers"
	byController planner = "controller"
)

func planners() []planner { return []planner{byPeers, byController} }

func (p planner) name() string { return string(p) }

// mark has the pods of a Deployment be planned for in this way.
func (p planner) mark(d *appsv1.Deployment) *appsv1.Deployment {
	if p == byController {
		d.Spec.Template.Labels[receipt.AssignLabel] = receipt.ByAgent
	}
	return d
}

func agents(d *appsv1.Deployment) bool {
	return d.Spec.Template.Labels[receipt.AssignLabel] == receipt.ByAgent
}

// control starts a controller for the workload's namespace, until remove.
func (w *workload) control(ctx context.Context) (err error) {
	path, err := program.Build(ctx, w.env.ControlPlane.Dir())
	if err != nil {
		return err
	}
	kubeconfig, err := w.env.ControlPlane.Kubeconfig(controlplane.Admin)
	if err != nil {
		return err
	}
	w.controller, err = program.Start(ctx, path, kubeconfig, w.Name)
	return err
}

// proposed waits until the controller has proposed a slot to each pod.
func (w *workload) proposed(ctx context.Context) error {
	return w.until(ctx, func(ctx context.Context) (bool, error) {
		pods, err := w.Pods(ctx, w.deployment)
		if err != nil {
			return false, err
		}
		for i := range pods {
			if p, ok := receipt.ProposalOf(&pods[i]); !ok || p.Share.Empty() {
				return false, nil
			}
		}
		return true, nil
	})
}

// told is the protocol of pods for which the controller plans. It has proposed the slots by the time they start: it does so when a pod is made.
type told struct{ ours }

func (told) name() string { return "agents" }

func (told) deployment(n int) *appsv1.Deployment { return byController.mark(plain(n)) }

func (told) prepare(ctx context.Context, w *workload) error { return w.proposed(ctx) }

// agentRules are what an agent may do: its process reads and writes no workload.
func agentRules() (out []rbacv1.PolicyRule) {
	for _, rule := range suite.Rules() {
		if rule.Resources[0] == "pods" {
			out = append(out, rule)
		}
	}
	return out
}
