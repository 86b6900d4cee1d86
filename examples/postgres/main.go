package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idalloc/idalloc"
)

// stepTime stands for how long a real program works on an item.
const stepTime = 10 * time.Millisecond

var errUsage = errors.New("usage: postgres work")

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(log, os.Args[1:], func(ctx context.Context, _ int) { pause(ctx, stepTime) }); err != nil {
		log.Error("ended", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger, args []string, compute func(context.Context, int)) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if !slices.Equal(args, []string{"work"}) {
		return errUsage
	}
	fenceAfter, err := time.ParseDuration(cmp.Or(os.Getenv("FENCE_AFTER"), "0"))
	if err != nil {
		return fmt.Errorf("FENCE_AFTER: %w", err)
	}
	db, err := pgxpool.New(ctx, cmp.Or(os.Getenv("DATABASE_URL"), "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := setup(ctx, db); err != nil {
		return err
	}
	w := &Worker{Name: os.Getenv("POD_NAME"), DB: db, Compute: compute, Log: log}
	return idalloc.RunPartitions(ctx, idalloc.Options{Log: logr.FromSlogHandler(log.Handler()), FenceAfter: fenceAfter}, w.Work)
}
