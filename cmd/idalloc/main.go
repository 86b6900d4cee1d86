// Command idalloc gives every replica of a workload its own id. See idalloc --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/sanitise"
	"github.com/idalloc/idalloc/pkg/allocator"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	root := newRoot() //nolint:contextcheck // cobra gives each command the context of ExecuteContext
	root.SetArgs(args)
	stdout, stderr := sanitise.Writer(os.Stdout), sanitise.Writer(os.Stderr)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && err.Error() != "" { // an error without a text only carries the exit code of run's command
		_, _ = fmt.Fprintln(stderr, "error:", err)
		leaveWord(terminationLog, cmd, err)
	}
	return exitCode(err)
}

// statusError ends the program with a given exit code. err is nil if there is no message.
type statusError struct {
	code int
	err  error
}

// Error returns the message, or an empty text.
func (e statusError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the error behind the message, if there is one.
func (e statusError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var status statusError
	switch code := cli.ExitCode(err); {
	case errors.As(err, &status):
		return status.code
	case code == cli.ExitError && errors.Is(err, allocator.ErrNoSlot) && errors.Is(err, agent.ErrTimeout):
		return cli.ExitNoSlot
	default:
		return code
	}
}
