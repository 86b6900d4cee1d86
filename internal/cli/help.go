package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/idalloc/idalloc/internal/connect"
)

// width is the number of characters in a line of help.
const width = 80

// Program completes a root command. A command's help shows only its own flags; the command options lists the flags of all commands.
func Program(root *cobra.Command, version string) {
	root.Version = version
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(FlagError)
	root.SetUsageFunc(usage)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	if root.HasSubCommands() {
		root.AddCommand(options())
	}
}

// usage writes the part of a command's help below the description. One of cobra's templates would link text/template, and with it every method.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	use := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		use = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", use)
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	if flags := own(cmd); flags.HasAvailableFlags() {
		b.WriteString("\nFlags:\n" + flags.FlagUsagesWrapped(width))
	}
	switch root := cmd.Root().CommandPath(); {
	case !cmd.Root().HasSubCommands():
	case !cmd.HasParent():
		fmt.Fprintf(&b, "\n%q shows the flags of a command,\nand %q those of all.\n", root+" COMMAND --help", root+" options")
	default:
		fmt.Fprintf(&b, "\nSee %q for the flags of all commands.\n", root+" options")
	}
	_, err := io.WriteString(cmd.OutOrStderr(), b.String())
	return err
}

// own returns a command's flags without those of its subcommands.
func own(cmd *cobra.Command) *pflag.FlagSet {
	if !cmd.HasSubCommands() {
		return cmd.LocalFlags()
	}
	return cmd.LocalNonPersistentFlags()
}

// options returns the command that lists the flags of all commands. kubectl's flags come last.
func options() *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "List the flags that all commands have", Args: NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ours, kubectls := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
			cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
				if connect.Is(f) {
					kubectls.AddFlag(f)
					return
				}
				ours.AddFlag(f)
			})
			text := "kubectl's flags, for the way to the API server. A pod needs none.\n\n" + kubectls.FlagUsagesWrapped(width)
			if ours.HasFlags() {
				text = "All commands have these flags:\n\n" + ours.FlagUsagesWrapped(width) + "\n" + text
			}
			_, err := io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
}
