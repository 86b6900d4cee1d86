package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/check"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const checkHelp = `check shows which parts of idalloc the cluster has, as kubectl idalloc check
does. The test of the Helm chart runs it.`

func newCheck() *cobra.Command {
	var connection connect.Flags
	var namespace string
	cmd := &cobra.Command{
		Use: "check", Short: "Show what the cluster has of idalloc", Long: checkHelp, Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, own, err := connection.Config()
			if err != nil {
				return err
			}
			if namespace == "" {
				namespace = own
			}
			s, err := store.New(config, clock.RealClock{})
			if err != nil {
				return err
			}
			version, err := check.ServerVersion(cmd.Context(), config)
			if err != nil {
				return fmt.Errorf("version of the API server: %w", err)
			}
			rows, err := check.Cluster(cmd.Context(), check.Options{Dynamic: s.Dynamic, Server: version, Namespace: namespace})
			if err != nil {
				return err
			}
			for _, r := range rows {
				_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s. %s\n", r.Part, r.State, r.Detail)
			}
			if parts := check.BrokenParts(rows); len(parts) > 0 {
				return fmt.Errorf("not in order: %s", strings.Join(parts, ", "))
			}
			return nil
		},
	}
	connection.BindKubeconfig(cmd.Flags())
	cmd.Flags().StringVar(&namespace, "namespace", "", "where pods are tried in dry runs; empty: that of the pod")
	return cmd
}
