// Envworker is the command that the specs of "idalloc run" wrap: it works under the id of its
// environment until SIGTERM, takes a moment to stop, and logs which id it uses like the examples'
// workloads. It knows nothing of Kubernetes.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/idalloc/idalloc/test/overlap"
)

const (
	probeInterval = 5 * time.Millisecond
	// stopTime stands for what a real workload needs to stop. The id is still in use during it.
	stopTime = 50 * time.Millisecond
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	id, err := strconv.Atoi(os.Getenv("IDALLOC_ID"))
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(os.Getenv("IDALLOC_COUNT"))
	if err != nil {
		return err
	}
	epoch, err := strconv.ParseInt(os.Getenv("IDALLOC_EPOCH"), 10, 64)
	if err != nil {
		return err
	}
	w, err := overlap.NewWriter(os.Getenv("PROBE_DIR"), os.Getenv("POD_NAME"), os.Getenv("POD_UID"))
	if err != nil {
		return err
	}
	err = work(ctx, w, id, count, epoch)
	none := w.Sample(func() (int, int, int64) { return overlap.None, 0, 0 })
	return errors.Join(err, none, w.Close())
}

func work(ctx context.Context, w *overlap.Writer, id, count int, epoch int64) error {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	var stopped <-chan time.Time
	ended := ctx.Done()
	for {
		if err := w.Sample(func() (int, int, int64) { return id, count, epoch }); err != nil {
			return err
		}
		select {
		case <-ended:
			ended, stopped = nil, time.After(stopTime)
		case <-stopped:
			return nil
		case <-ticker.C:
		}
	}
}
