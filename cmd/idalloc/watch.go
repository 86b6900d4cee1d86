package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/agent"
)

type watcher struct {
	inPod
	httpAddress string
	moveDelay   time.Duration
	drain       drainFlags
	fence       fenceFlags
}

func newWatch(g *global) *cobra.Command {
	w := &watcher{inPod: inPod{global: g}}
	cmd := &cobra.Command{
		Use:         "watch",
		Annotations: marked(),
		Short:       "Claim an id for this pod and keep publishing it until told to stop",
		Long: `Claims a slot for this pod, or takes the one that "idalloc init" claimed, and keeps the files in
--dir and the answers on --http-address true until SIGTERM. The file "id" exists only while the
pod may act under its id. Run it beside the workload, or alone as a native sidecar with a startup
probe on /readyz.

When a scale-down leaves this pod with an id at or above the count, the id is withdrawn from the
files, and after --move-delay its slot is given away and a free one below the count is taken. With a
drain hook, --drain-exec or --drain=http, the slot is given away when the hook says that the work
has stopped.

` + rolloutHelp,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd.Context()) },
	}
	w.bind(cmd)
	f := cmd.Flags()
	f.StringVar(&w.httpAddress, "http-address", ":8089", "address of GET /v1/identity, /readyz and /healthz, and of POST /v1/drained; empty: off")
	f.DurationVar(&w.moveDelay, "move-delay", time.Second,
		"without a drain hook: time between withdrawing an id from the files and giving its slot away; longer than the workload takes to notice")
	w.drain.bind(f)
	w.fence.bind(f)
	return cmd
}

func (w *watcher) run(ctx context.Context) error {
	lean()
	hooks, err := w.drain.check(w.httpAddress)
	if err != nil {
		return err
	}
	if hooks.Fence, err = w.fence.check(); err != nil {
		return err
	}
	if err := w.checkTimeout(w.fence.after); err != nil {
		return err
	}
	o, err := w.options(true)
	if err != nil {
		return err
	}
	o.HTTPAddress, o.MoveDelay, o.FenceAfter = w.httpAddress, w.moveDelay, w.fence.after
	return agent.Watch(ctx, o, hooks)
}
