package main

import (
	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/internal/connect"
)

const longHelp = `idalloc-autoscaler measures how fast each partition of a workload grows, packs
the partitions into few pods, and sets the number of pods and which id owns
what. It moves as little load as it can. The workload's strategy for partitions
must be "external".

It needs to know what one pod works off (--capacity, which "measure" finds
out), and where to read the loads (--source). Run one Deployment of it for each
workload; several replicas elect one that acts.

Each flag has an environment variable: --max-age is IDALLOC_AUTOSCALER_MAX_AGE.
A flag on the command line wins.

Exit codes: 0 done; 1 error; 2 usage; 4 forbidden by RBAC.`

// global holds the flags that all commands have.
type global struct {
	connect.Flags
	log cli.Log
}

func newRoot() *cobra.Command {
	environment, g := cli.Prefixed("IDALLOC_AUTOSCALER"), &global{}
	root := &cobra.Command{
		Use:               "idalloc-autoscaler",
		Short:             "Scale a workload by the load of its partitions",
		Long:              longHelp,
		Args:              cobra.ArbitraryArgs,
		RunE:              cli.Help,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return environment.Set(cmd.Flags()) },
	}
	g.Bind(root.PersistentFlags())
	g.log.Bind(root.PersistentFlags(), "1 adds each step")
	root.AddCommand(newRun(g), newGet(g), newPlan(), newMeasure(g), commands.NewVersion("idalloc-autoscaler", version, commands.Plain()))
	cli.Program(root, version)
	return root
}
