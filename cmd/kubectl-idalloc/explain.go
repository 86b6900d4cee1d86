package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/inspect"
)

func newExplain(g *global) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "explain POD",
		Short: "Say why a pod has no id, and what to do",
		Long: `Says whether the pod has an id or waits for one, what it waits for, and what to do about that. It looks at
the pod, at its workload, at idalloc's last Event about the pod, and at the permissions of its service
account, as far as you may. It changes nothing.`,
		Example:           "  kubectl idalloc explain worker-6dc99c5c6-x55m7 -n prod",
		ValidArgsFunction: g.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("name one pod, for example worker-6dc99c5c6-x55m7")
			}
			if _, err := o.printer(); err != nil {
				return err
			}
			pod := strings.TrimPrefix(strings.TrimPrefix(args[0], "pods/"), "pod/")
			s, namespace, err := g.connect()
			if err != nil {
				return err
			}
			e, err := inspect.Explain(cmd.Context(), s, namespace, pod)
			if err != nil {
				return err
			}
			if !o.people() {
				return o.items(cmd.OutOrStdout(), false, item{about("v1", "Pod", namespace, pod), "Explanation", e})
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), e.Text())
			return err
		},
	}
	o.flags(cmd)
	return cmd
}

func newVersion() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use: "version", Short: "Print the plugin's version", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := o.printer(); err != nil {
				return err
			}
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if !o.people() {
				data := map[string]string{"version": version, "goVersion": runtime.Version(), "platform": platform}
				return o.items(cmd.OutOrStdout(), false, item{about("idalloc.dev/v1", "Version", "", "kubectl-idalloc"), "Version", data})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "kubectl-idalloc %s %s %s\n", version, runtime.Version(), platform)
			return err
		},
	}
	o.flags(cmd)
	return cmd
}
