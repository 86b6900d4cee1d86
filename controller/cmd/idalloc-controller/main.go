// Command idalloc-controller gives ids to pods that wait behind a scheduling gate. See idalloc-controller --help.
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/sanitise"
)

// version is set by the linker.
var version = "dev"

// garbage is the GOGC value in percent if the environment has none. With 10,000 pods, Go's default of 100 costs 16 MiB more.
const garbage = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 { // GOMEMLIMIT is the container's limit, and the heap is only a part of that
		debug.SetMemoryLimit(limit / 10 * 9)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(sanitise.Writer(os.Stderr), "error:", err)
	}
	os.Exit(cli.ExitCode(err))
}
