package main

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

const longHelp = `kubectl idalloc has what people do with idalloc, and pods do not need. The program that runs in pods
is idalloc.

Exit codes: 0 done; 1 error; 2 usage.`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-idalloc",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl idalloc"},
		Short:         "A small integer id for every replica of a Kubernetes workload",
		Long:          longHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q: see kubectl idalloc --help", args[0])}
			}
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(newInject(), newVersion())
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "kubectl-idalloc %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args)}
	}
	return nil
}

var errNoFile = usageError{errors.New("name a file with -f, or - for standard input")}
