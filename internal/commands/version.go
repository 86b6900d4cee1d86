package commands

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// NewVersion returns a program's command version.
func NewVersion(program, version string, formats Formats) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version", Args: cli.NoArgs}
	out := NewOutput(cmd, formats)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		platform := runtime.GOOS + "/" + runtime.GOARCH
		if out.ForPeople() {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s %s\n", program, version, runtime.Version(), platform)
			return err
		}
		data := map[string]string{"version": version, "goVersion": runtime.Version(), "platform": platform}
		return out.Items(cmd.OutOrStdout(), false, Item{kinds.Ref{APIVersion: "idalloc.dev/v1", Kind: "Version", Name: program}, "Version", data})
	}
	return cmd
}
