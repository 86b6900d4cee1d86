package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// claimant is one pod that wants an id.
type claimant struct {
	namespace, deployment string
	pod                   *corev1.Pod
	// config reaches the API server with the pod's own connection.
	config *rest.Config
}

// protocol is what N pods do at once: a way to share out ids, or a yardstick for such ways.
type protocol interface {
	name() string
	// deployment is a Deployment of n such pods.
	deployment(n int) *appsv1.Deployment
	// prepare makes what the pods find, before the clock starts.
	prepare(ctx context.Context, w *workload) error
	// claim blocks until the pod has an id. leave ends whatever runs on for the pod, without giving
	// the id back; it may be nil.
	claim(ctx context.Context, c claimant) (id int, leave func(), err error)
	// verify returns an error unless what the API server has now fits what all pods got. Pods that the
	// time limit stopped have stopped set.
	verify(ctx context.Context, w *workload, all []claimed) error
}

// protocols are all there are, in the order of the table.
func protocols() []protocol {
	return []protocol{ours{}, told{}, cdap{}, floor{}}
}
