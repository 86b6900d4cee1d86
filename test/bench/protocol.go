package main

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// claimant is one pod that wants an id.
type claimant struct {
	*workload

	pod *corev1.Pod
	// config reaches the API server with the pod's own connection.
	config *rest.Config
}

// protocol is what N pods do at once: a way to share out ids, or a yardstick for such ways.
type protocol struct {
	name string
	by   planner
	// key is the annotation of the Deployment that says which pod has which id at the end.
	key string
	// prepare makes what the pods find, before the clock starts.
	prepare func(ctx context.Context, w *workload) error
	// claim blocks until the pod has an id. leave ends whatever runs on for the pod, without giving the id back; it may be nil.
	claim func(ctx context.Context, c claimant) (id int, leave func(), err error)
}

// protocols are all there are, in the order of the table.
func protocols() []protocol {
	nothing := func(context.Context, *workload) error { return nil }
	return []protocol{
		{"idalloc", byPeers, assignment.Key, nothing, claim},
		// The controller has proposed the slots by the time the pods start: it does so when a pod is made.
		{"agents", byController, assignment.Key, proposed, claim},
		{"cdap", byPeers, cdapKey, nothing, claimFromCDAP},
		{"floor", byPeers, assignment.Key, propose, claimAtTheFloor},
	}
}

// claim claims as a linked workload does: what it costs to find the owner and to watch it is in the figures.
func claim(ctx context.Context, c claimant) (id int, leave func(), err error) {
	i, err := idalloc.Start(ctx, idalloc.Options{PodName: c.pod.Name, PodNamespace: c.Name, Config: c.config, Log: quiet()})
	if err != nil {
		return 0, nil, err
	}
	leave = func() { abandon(ctx, i) }
	now, err := i.Wait(ctx)
	if err != nil {
		leave()
		return 0, nil, err
	}
	return now.ID, leave, nil
}

// abandon ends an instance as a crash would: the slot is not given back.
func abandon(ctx context.Context, i *idalloc.Instance) {
	over, cancel := context.WithCancel(ctx)
	cancel()
	_ = i.Close(over)
}

// quiet is a log that costs nothing.
func quiet() logr.Logger { return logr.FromSlogHandler(slog.DiscardHandler) }
