// Partitionworker is a program that works on the partitions which belong to its pod, through package idalloc. config/examples/partitions
// runs it.
//
// What to copy from it is the call of idalloc.RunPartitions. Its function is the whole work on one partition. It is called for each partition
// that the pod owns. Its context ends when that one is to move, and the calls for all others go on. No other pod gets the
// partition before the function has returned, so return only when nothing works on it any more.
//
//	POD_NAME, POD_NAMESPACE   who this is, from the downward API
//	HTTP_ADDRESS              for the readiness probe; default :8080
//	FENCE_AFTER               turns on strict mode, such as 6s; default off
package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/identity"
)

// stepTime stands for how long one step of a real program takes, such as one message of a queue.
const stepTime = 50 * time.Millisecond

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(log); err != nil {
		log.Error("ended", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	// Kubernetes asks with SIGTERM. Run returns after all calls have returned and the slot was given back.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	fenceAfter, err := time.ParseDuration(cmp.Or(os.Getenv("FENCE_AFTER"), "0"))
	if err != nil {
		return fmt.Errorf("FENCE_AFTER: %w", err)
	}
	var ready atomic.Bool
	if err := serve(ctx, &ready); err != nil {
		return err
	}
	options := idalloc.Options{
		Log:        logr.FromSlogHandler(log.Handler()),
		FenceAfter: fenceAfter,
		// Ready with an id, and not only with partitions: there may be more pods than partitions.
		Changed: func(id identity.Identity) { ready.Store(id.Assigned()) },
	}
	return idalloc.RunPartitions(ctx, options, func(ctx context.Context, p idalloc.Partition) error {
		log.Info("working", "partition", p.Number, "token", p.Token, "id", p.Instance.ID)
		work(ctx)
		log.Info("stopped working", "partition", p.Number, "reason", context.Cause(ctx).Error())
		return nil
	})
}

// work stands for the program. It asks before each step whether it still has its partition.
func work(ctx context.Context) {
	ticker := time.NewTicker(stepTime)
	defer ticker.Stop()
	for ctx.Err() == nil {
		<-ticker.C
	}
}

// serve answers the readiness probe for as long as the process lives.
func serve(ctx context.Context, ready *atomic.Bool) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cmp.Or(os.Getenv("HTTP_ADDRESS"), ":8080"))
	if err != nil {
		return fmt.Errorf("cannot serve the readiness probe, set HTTP_ADDRESS to another port: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "no id is assigned", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { slog.Error("the readiness probe is not answered any more", "error", server.Serve(listener)) }()
	return nil
}
