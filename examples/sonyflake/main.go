package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc"
)

// period is how often a batch of ids is made.
const period = 10 * time.Millisecond

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
	skew, err := time.ParseDuration(cmp.Or(os.Getenv("CLOCK_SKEW"), "500ms"))
	if err != nil {
		return fmt.Errorf("CLOCK_SKEW: %w", err)
	}
	rate, err := strconv.Atoi(cmp.Or(os.Getenv("RATE"), "100"))
	if err != nil {
		return fmt.Errorf("RATE: %w", err)
	}
	g := &Generator{Skew: skew, Clock: clock.RealClock{}, Log: log}
	written := make(chan error, 1)
	go func() {
		defer stop()
		written <- write(ctx, g, rate)
	}()
	// The node number does not depend on the count.
	options := idalloc.Options{KeepOnCountChange: true, Log: logr.FromSlogHandler(log.Handler())}
	err = idalloc.Run(ctx, options, g.Work)
	stop()
	return errors.Join(err, <-written)
}

// write stands for the program: it makes ids until ctx ends, and writes them down.
func write(ctx context.Context, g *Generator, rate int) (err error) {
	path := filepath.Join(os.Getenv("IDS_DIR"), os.Getenv("POD_NAME"))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the pod's author names the directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for begin, made := time.Now(), 0; ctx.Err() == nil; <-ticker.C {
		due := int(time.Since(begin).Seconds() * float64(rate))
		batch := []byte{}
		for ; made < due; made++ {
			id, err := g.Next()
			if errors.Is(err, ErrNoID) {
				begin, made = time.Now(), 0 // nothing is made up for
				break
			}
			if err != nil {
				return err
			}
			batch = binary.BigEndian.AppendUint64(batch, id)
		}
		if _, err := file.Write(batch); err != nil {
			return err
		}
	}
	return nil
}
