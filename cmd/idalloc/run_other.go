//go:build !unix

package main

import (
	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
)

// newRun returns a command that only explains that it needs Linux: no pods run on this system.
func newRun(*global) *cobra.Command {
	return &cobra.Command{
		Use:                "run",
		Short:              "Not on this operating system",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return cli.Usagef("idalloc run does not work on this operating system: use it in a Linux container")
		},
	}
}
