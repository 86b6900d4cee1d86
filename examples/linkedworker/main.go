package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc"
)

// stepTime stands for how long one step of a real program takes, such as a request or a flush. The id is
// in use until the step is over.
const stepTime = 50 * time.Millisecond

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(log); err != nil {
		log.Error("ended", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	// Kubernetes asks with SIGTERM. Run returns after the function has returned and the slot was given back.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	var ready readiness
	shutdown, err := ready.serve(ctx, os.Getenv("HTTP_ADDRESS"))
	if err != nil {
		return err
	}
	defer shutdown()

	return idalloc.Run(ctx, idalloc.Options{Log: logr.FromSlogHandler(log.Handler())}, func(ctx context.Context, id idalloc.Identity) error {
		ready.set(true)
		defer ready.set(false)
		log.Info("working", "id", id.ID, "count", id.Count, "token", id.Token)
		defer log.Info("stopped working", "id", id.ID, "count", id.Count)
		work(ctx)
		return nil
	})
}

// work stands for the program. It asks before each step whether it still has its id: ctx.Err looks at the
// clock in strict mode (idalloc.Options.FenceAfter), where the id may be another pod's by now, whatever this
// process was last told.
func work(ctx context.Context) {
	ticker := time.NewTicker(stepTime)
	defer ticker.Stop()
	for ctx.Err() == nil {
		<-ticker.C
	}
}
