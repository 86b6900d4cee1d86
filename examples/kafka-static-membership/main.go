package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/idalloc/idalloc"
)

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
	timeout, err := time.ParseDuration(cmp.Or(os.Getenv("SESSION_TIMEOUT"), "45s"))
	if err != nil {
		return fmt.Errorf("SESSION_TIMEOUT: %w", err)
	}
	c := &Consumer{
		Brokers:        strings.Split(cmp.Or(os.Getenv("KAFKA_BROKERS"), "127.0.0.1:9092"), ","),
		Topic:          cmp.Or(os.Getenv("TOPIC"), "orders"),
		Group:          cmp.Or(os.Getenv("GROUP"), "workers"),
		SessionTimeout: timeout,
		Handle: func(r *kgo.Record) error {
			log.Info("processed", "partition", r.Partition, "offset", r.Offset)
			return nil
		},
		Log: log,
	}
	// The member's name does not depend on the count.
	return idalloc.Run(ctx, idalloc.Options{KeepOnCountChange: true, Log: logr.FromSlogHandler(log.Handler())}, c.Work)
}
