package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/test/overlap"
)

// settings is what workLinked reads from its environment.
type settings struct {
	idalloc.Options

	// address is HTTP_ADDRESS, for the readiness probe; default :8080.
	address string
	// failAfter is FAIL_AFTER: the work fails after that time, as that of a broken revision does. 0: it does not.
	failAfter time.Duration
}

// environment reads the settings. FENCE_AFTER and KEEP_ON_COUNT_CHANGE are the options of these names.
func environment() (settings, error) {
	s := settings{address: cmp.Or(os.Getenv("HTTP_ADDRESS"), ":8080")}
	s.Log = logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil))
	var fence, keep, fail error
	s.FenceAfter, fence = time.ParseDuration(cmp.Or(os.Getenv("FENCE_AFTER"), "0s"))
	s.KeepOnCountChange, keep = strconv.ParseBool(cmp.Or(os.Getenv("KEEP_ON_COUNT_CHANGE"), "false"))
	s.failAfter, fail = time.ParseDuration(cmp.Or(os.Getenv("FAIL_AFTER"), "0s"))
	return s, errors.Join(fence, keep, fail)
}

// workLinked claims ids and works under them. It is ready while it does.
func workLinked(ctx context.Context, w *overlap.Writer) error {
	s, err := environment()
	if err != nil {
		return err
	}
	var working atomic.Bool
	if err := serveReadiness(ctx, s.address, &working); err != nil {
		return err
	}
	return idalloc.Run(ctx, s.Options, func(ctx context.Context, id idalloc.Identity) error {
		working.Store(true)
		defer working.Store(false)
		if s.failAfter > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, s.failAfter, errFailed)
			defer cancel()
		}
		return act(ctx, w, id.ID, id.Count, id.Token)
	})
}

// errFailed is the end of work that FAIL_AFTER asks for.
var errFailed = errors.New("the work failed, because FAIL_AFTER is set")

// failure returns errFailed if that is how the work ended.
func failure(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errFailed) {
		return errFailed
	}
	return nil
}

// serveReadiness answers the readiness probe for as long as the process lives. It returns once the port is bound.
func serveReadiness(ctx context.Context, address string, ready *atomic.Bool) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("HTTP_ADDRESS: %w", err)
	}
	answer := func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }() // without it the pod is not Ready, and its spec fails
	return nil
}
