// Command idalloc-controller gives ids to pods that wait for them behind a scheduling gate. See idalloc-controller --help.
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

// garbage is how much of the memory in use may be garbage, in percent, unless GOGC says so. With 10,000 pods, Go's own 100 costs 16 MiB more.
const garbage = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 { // GOMEMLIMIT is the container's limit, of which Go's heap is not all
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
