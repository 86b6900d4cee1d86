package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// planner says who plans for the pods of a workload: they themselves, or the controller, whose agents they are then. With none, pods run without idalloc: a
// yardstick for what Kubernetes costs alone.
type planner string

const (
	byPeers      planner = "peers"
	byController planner = "controller"
	byNone       planner = "none"
)

func planners() []planner { return []planner{byPeers, byController, byNone} }

func (p planner) name() string { return string(p) }

// plain returns a Deployment whose pods do nothing.
func (p planner) plain(n int) *appsv1.Deployment {
	d := idle(n)
	if p == byController {
		d.Spec.Template.Labels[receipt.AssignLabel] = receipt.ByAgent
	}
	return d
}

// proposed waits until the controller has proposed a slot to each pod.
func proposed(ctx context.Context, w *workload) error {
	return w.until(ctx, func(ctx context.Context) (bool, error) {
		pods, err := w.Pods(ctx, deployment)
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
