package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/check"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

func newCheck(g *global) *cobra.Command {
	var out *commands.Output
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Show what the cluster has of idalloc; exit 1 if a part is missing",
		Long: `Shows which parts of idalloc the cluster has, whether they are in force, and
what the controller may do. It changes nothing: it tries pods in dry runs, in
the namespace of -n. It exits with 1 if a part is missing or broken.`,
		Example: `  kubectl idalloc check
  kubectl idalloc check -n prod -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			return runCheck(cmd, g, out)
		},
	}
	out = commands.NewOutput(cmd, formats())
	return cmd
}

func runCheck(cmd *cobra.Command, g *global, out *commands.Output) error {
	config, namespace, err := g.Config()
	if err != nil {
		return err
	}
	server, err := check.ServerVersion(cmd.Context(), config)
	if err != nil {
		return fmt.Errorf("ask the API server at %s for its version: %w: check the kubeconfig and the network", config.Host, err)
	}
	s, _, err := g.connect()
	if err != nil {
		return err
	}
	rows, err := check.Cluster(cmd.Context(), check.Options{Dynamic: s.Dynamic, Server: server, Namespace: namespace})
	if err != nil {
		return err
	}
	if err := printCheck(cmd.OutOrStdout(), rows, out); err != nil {
		return err
	}
	if parts := check.BrokenParts(rows); len(parts) > 0 {
		// Error: exit code 1: `kubectl idalloc check` found a part that is missing or broken.
		// Do: follow the column DETAIL.
		return fmt.Errorf("not in order: %s; see above", strings.Join(parts, ", "))
	}
	return nil
}

func printCheck(to io.Writer, rows []check.Row, out *commands.Output) error {
	if !out.ForPeople() {
		return out.Items(to, false, commands.Item{About: kinds.Ref{APIVersion: "idalloc.dev/v1", Kind: "Check", Name: "cluster"}, Kind: "Check", Data: map[string]any{"rows": rows}})
	}
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		cells = append(cells, []string{r.Part, string(r.State), r.Detail})
	}
	return out.Table(to, inspect.Columns{Always: []string{"PART", "STATE", "DETAIL"}}, cells)
}
