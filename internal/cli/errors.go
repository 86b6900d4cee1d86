// Package cli is shared by the commands: exit codes, flags with their environment variables, and the log.
package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Exit codes; docs/contract.md documents them.
const (
	ExitDone      = 0
	ExitError     = 1
	ExitUsage     = 2
	ExitNoSlot    = 3
	ExitForbidden = 4
)

// UsageError means that the command was called incorrectly.
type UsageError struct{ error }

// Unwrap returns the error without its type.
func (e UsageError) Unwrap() error { return e.error }

// Usage returns err as a UsageError.
func Usage(err error) error { return UsageError{err} }

// Usagef returns a UsageError with a text formatted as by fmt.Errorf.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// FlagError is for a root command's SetFlagErrorFunc. It returns a UsageError that names the help.
func FlagError(cmd *cobra.Command, err error) error {
	return Usagef("%w: see %s --help", err, cmd.CommandPath())
}

// Help runs a root command: it shows the help, or returns a UsageError for an unknown command.
func Help(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unknown command %q: see %s --help", args[0], cmd.CommandPath())
	}
	return cmd.Help()
}

// NoArgs returns a UsageError if the command has arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments, got %q", cmd.CommandPath(), args)
	}
	return nil
}

// ExitCode returns the exit code for err. It never returns ExitNoSlot.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, new(UsageError)):
		return ExitUsage
	case errors.As(err, new(*request.ForbiddenError)):
		return ExitForbidden
	}
	return ExitError
}
