package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idalloc/idalloc"
)

// stepTime stands for how long a real program works on a row.
const stepTime = 5 * time.Millisecond

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(log); err != nil {
		log.Error("ended", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	stride, err := strconv.Atoi(cmp.Or(os.Getenv("STRIDE"), "1024"))
	if err != nil {
		return fmt.Errorf("STRIDE: %w", err)
	}
	db, err := pgxpool.New(ctx, cmp.Or(os.Getenv("DATABASE_URL"), "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"))
	if err != nil {
		return err
	}
	defer db.Close()
	// The keys do not depend on the count.
	options := idalloc.Options{KeepOnCountChange: true, Log: logr.FromSlogHandler(log.Handler())}
	return idalloc.Run(ctx, options, func(ctx context.Context, id idalloc.Identity) error {
		shard := Shard{DB: db, ID: id.ID, Stride: stride}
		if err := shard.Open(ctx); err != nil {
			return err
		}
		log.Info("working", "shard", shard.Name())
		return work(ctx, shard)
	})
}

// work stands for the program: it writes rows until ctx ends.
func work(ctx context.Context, shard Shard) error {
	ticker := time.NewTicker(stepTime)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if _, err := shard.Add(ctx, os.Getenv("POD_NAME")); err != nil {
			return err
		}
		<-ticker.C
	}
	return nil
}
