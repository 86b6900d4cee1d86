// Command idalloc-autoscaler scales a workload by the load of its partitions. See idalloc-autoscaler --help.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/sanitise"
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
	stdout, stderr = sanitise.Writer(stdout), sanitise.Writer(stderr)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "error:", err)
	}
	return cli.ExitCode(err)
}
