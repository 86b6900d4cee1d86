// Command idalloc-autoscaler scales a workload by the load of its partitions. See idalloc-autoscaler --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/idalloc/idalloc/internal/plain"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Exit codes, the same as idalloc's where both have them.
const (
	exitDone      = 0
	exitError     = 1
	exitUsage     = 2
	exitForbidden = 4
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	stdout, stderr = plain.Writer(stdout), plain.Writer(stderr)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "error:", err)
	}
	return exitCode(err)
}

// usageError means that the command was called in a wrong way.
type usageError struct{ error }

// Unwrap returns the error without its type.
func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var (
		usage     usageError
		forbidden *store.ForbiddenError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &forbidden):
		return exitForbidden
	}
	return exitError
}
