// Command idalloc-controller gives ids to pods that wait for them behind a scheduling gate. See idalloc-controller --help.
package main

import (
	"context"
	"fmt"
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
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(plain.Writer(os.Stderr), "error:", err)
	}
	os.Exit(cli.ExitCode(err))
}
