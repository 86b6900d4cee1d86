package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/identity"
)

// ready returns options with which the pod is Ready while it has an id, and not only with partitions: an autoscaler gives a pod load only
// once it is Ready. The probe is answered at the address for as long as the process lives.
func ready(ctx context.Context, o idalloc.Options, address string) (idalloc.Options, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return o, fmt.Errorf("cannot serve the readiness probe, set HTTP_ADDRESS to another port: %w", err)
	}
	var assigned atomic.Bool
	o.Changed = func(id identity.Identity) { assigned.Store(id.Assigned()) }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !assigned.Load() {
			http.Error(w, "no id is assigned", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { slog.Error("the readiness probe is not answered any more", "error", server.Serve(listener)) }()
	return o, nil
}
