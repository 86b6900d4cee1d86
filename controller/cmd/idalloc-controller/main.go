// Command idalloc-controller gives ids to pods that wait for them behind a scheduling gate. See idalloc-controller --help.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/plain"
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
	root := newRoot() //nolint:contextcheck // cobra brings the context
	root.SetArgs(args)
	root.SetOut(plain.Writer(stdout))
	root.SetErr(plain.Writer(stderr))
	err := root.ExecuteContext(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(plain.Writer(stderr), "error:", err)
	}
	return cli.ExitCode(err)
}
