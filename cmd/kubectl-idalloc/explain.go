package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

func newExplain(g *global) *cobra.Command {
	var (
		o       *commands.Output
		further []string
	)
	cmd := &cobra.Command{
		Use:   "explain POD",
		Short: "Say why a pod has no id, and what to do",
		Long: `Says whether the pod has an id, what it waits for, and what to do about that. It
looks at the pod, its workload, idalloc's last Event about the pod, and the
permissions of its service account, as far as you may. It changes nothing.`,
		Example:           "  kubectl idalloc explain worker-6dc99c5c6-x55m7 -n prod",
		ValidArgsFunction: g.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			pod := strings.TrimPrefix(strings.TrimPrefix(strings.Join(args, " "), "pods/"), "pod/")
			if len(args) != 1 || strings.Contains(pod, "/") {
				return cli.Usagef("name one pod, for example worker-6dc99c5c6-x55m7")
			}
			if err := o.Check(); err != nil {
				return err
			}
			s, namespace, err := g.connect()
			if err != nil {
				return err
			}
			e, err := inspect.Explain(cmd.Context(), s, namespace, pod, further...)
			if err != nil {
				return err
			}
			if !o.ForPeople() {
				of := kinds.Ref{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: pod}
				return o.Items(cmd.OutOrStdout(), false, commands.Item{About: of, Kind: "Explanation", Data: e})
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), e.Text())
			return err
		},
	}
	cmd.Flags().StringSliceVar(&further, "kind", nil, "further kinds, as of idalloc-controller")
	o = commands.NewOutput(cmd, formats())
	return cmd
}
