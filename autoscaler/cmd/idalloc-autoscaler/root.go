package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
)

const longHelp = `idalloc-autoscaler measures how fast each partition of a workload grows, packs the partitions into as
few pods as work that off, and sets the number of pods and which id owns what. It moves as little load as it
can. The workload's strategy for partitions must be "external".

It needs to know what one pod works off (--capacity, which "measure" finds out), and where to read the loads (--source). Run one
Deployment of it for each workload; several replicas elect one that acts.

Every flag has an environment variable: --max-age is IDALLOC_AUTOSCALER_MAX_AGE. A flag on the command
line wins.

Exit codes: 0 done; 1 error; 2 usage; 4 forbidden by RBAC (the message names the missing verb and resource).`

func newRoot() *cobra.Command {
	environment, log := cli.Prefixed("IDALLOC_AUTOSCALER"), &cli.Log{}
	root := &cobra.Command{
		Use:               "idalloc-autoscaler",
		Short:             "Scale a workload by the load of its partitions",
		Long:              longHelp,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return environment.Set(cmd.Flags()) },
	}
	log.Bind(root.PersistentFlags(), "0 shows each change and each decision, 1 each step")
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddCommand(newRun(log), newGet(), newPlan(), newMeasure(), &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version)
			return err
		},
	})
	environment.Describe(root)
	return root
}
