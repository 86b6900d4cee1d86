package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/cli"
)

// errInitFence refuses strict mode. Ignoring the flag would be wrong, because the user relies on it.
// Error: exit code 2: `init` cannot withdraw an id.
// Do: use `idalloc run`, a linked program, or `watch --fence-exec` for strict mode.
var errInitFence = cli.Usagef("--fence-after: init has no strict mode, because it exits and the files that it leaves cannot expire: use idalloc run, a program that links idalloc, or idalloc watch with --fence-exec as a native sidecar without init")

func newInit(g *global) *cobra.Command {
	p := &inPod{global: g}
	var fenceAfter time.Duration
	cmd := &cobra.Command{
		Use:         "init",
		Annotations: marked(),
		Short:       "Claim an id for this pod, publish it once, and exit",
		Long: `Claims a slot for this pod, publishes id and count as files in --dir, and exits.
The pod keeps the slot until it is gone. Run it as an init container, and run
"idalloc watch" beside the program: a scale-down may take the id away.

` + rolloutHelp,
		Example: "  POD_NAME=worker-5d9-x2 POD_NAMESPACE=shop idalloc init --dir /tmp/idalloc",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fenceAfter != 0 {
				return errInitFence
			}
			return p.init(cmd.Context())
		},
	}
	p.bind(cmd)
	cmd.Flags().DurationVar(&fenceAfter, "fence-after", 0, "must be 0: init has no strict mode")
	return cmd
}

func (p *inPod) init(ctx context.Context) error {
	o, err := p.options(true, 0)
	if err != nil {
		return err
	}
	id, err := agent.Init(ctx, o)
	if err != nil {
		return err
	}
	// Log: `init` has an id.
	o.Allocator.Log.Info("claimed", "owner", id.Owner.String(), "pod", id.Pod, "id", id.ID, "count", id.Count, "token", id.Token)
	return nil
}
