//go:build !unix

package main

import (
	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
)

// newRun has nothing but a sentence where no pods run: on a person's machine.
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
