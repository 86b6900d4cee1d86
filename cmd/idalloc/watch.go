package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/cli"
)

type watcher struct {
	inPod
	httpAddress string
	moveDelay   time.Duration
	partitions  bool
	drain       drainFlags
	fence       fenceFlags
}

func newWatch(g *global) *cobra.Command {
	w := &watcher{inPod: inPod{global: g}}
	cmd := &cobra.Command{
		Use:         "watch",
		Annotations: marked(),
		Short:       "Claim an id for this pod and keep publishing it until told to stop",
		Long: `Claims a slot for this pod, or continues with the one that "idalloc init"
claimed. Until SIGTERM it keeps the files in --dir and the answers on
--http-address up to date. The file "id" exists only while the pod may act under
its id. Run it beside the program, or alone as a native sidecar with a startup
probe on /readyz.

After a scale-down this pod may have an id at or above the count. idalloc then
withdraws the id from the files, gives the slot away after --move-delay, and
takes a free one below the count. With a drain hook (--drain-exec or
--drain=http) it gives the slot away when the hook says that work has stopped.

With --partitions the file "partitions" names what the program may work on. If
another id is to have some of it, they leave the file, the drain hook stops the
work on them, and then they go. Without a drain hook the pod keeps its
partitions for as long as its slot.

` + rolloutHelp,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd.Context()) },
	}
	w.bind(cmd)
	f := cmd.Flags()
	f.StringVar(&w.httpAddress, "http-address", ":8089", "address of the HTTP server; empty: none")
	f.DurationVar(&w.moveDelay, "move-delay", time.Second,
		"without a drain hook: time that the program has to stop")
	bindPartitions(f, &w.partitions)
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
	if w.moveDelay < 0 {
		return cli.Usagef("--move-delay %s: use 0 or more", w.moveDelay)
	}
	o, err := w.options(true, w.fence.after)
	if err != nil {
		return err
	}
	o.HTTPAddress, o.MoveDelay, o.Partitions = w.httpAddress, w.moveDelay, w.partitions
	return agent.Watch(ctx, o, hooks)
}
