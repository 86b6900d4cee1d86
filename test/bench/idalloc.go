package main

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// ours is the protocol of this project, as a workload links it: what it costs to find the owner and
// to watch it is in the figures.
type ours struct{}

func (ours) name() string { return "idalloc" }

func (ours) deployment(n int) *appsv1.Deployment { return plain(n) }

func (ours) prepare(context.Context, *workload) error { return nil }

func (ours) claim(ctx context.Context, c claimant) (id int, leave func(), err error) {
	i, err := idalloc.Start(ctx, idalloc.Options{PodName: c.pod.Name, PodNamespace: c.namespace, Config: c.config, Log: quiet()})
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

func (ours) verify(ctx context.Context, w *workload, all []claimed) error {
	return w.verifyMap(ctx, assignment.Key, all)
}

// abandon ends an instance as a crash would: the slot is not given back.
func abandon(ctx context.Context, i *idalloc.Instance) {
	over, cancel := context.WithCancel(ctx)
	cancel()
	_ = i.Close(over)
}

// quiet is a log that costs nothing.
func quiet() logr.Logger { return logr.FromSlogHandler(slog.DiscardHandler) }
