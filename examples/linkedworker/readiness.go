package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	defaultAddress = ":8080"
	headerTimeout  = 5 * time.Second
)

// readiness answers the readiness probe: ready while the work runs under an id.
type readiness struct{ ready atomic.Bool }

func (r *readiness) set(ready bool) { r.ready.Store(ready) }

// serve answers /readyz in the background until shutdown is called. It returns once the port is bound.
func (r *readiness) serve(ctx context.Context, address string) (shutdown func(), err error) {
	if address == "" {
		address = defaultAddress
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve the readiness probe, set HTTP_ADDRESS to another port: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !r.ready.Load() {
			http.Error(w, "no id is assigned", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the readiness probe is not answered any more", "error", err)
		}
	}()
	return func() { _ = server.Close() }, nil
}
