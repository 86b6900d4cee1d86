package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	idcontext "github.com/idalloc/idalloc/pkg/context"
)

// stopTime stands for what a real workload needs to finish a request or flush a buffer. The id is
// still in use during it.
const stopTime = 50 * time.Millisecond

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
	probes, err := newProbe(os.Getenv("PROBE_DIR"), os.Getenv("POD_NAME"), os.Getenv("POD_UID"))
	if err != nil {
		return err
	}
	var ready readiness
	shutdown, err := ready.serve(ctx, os.Getenv("HTTP_ADDRESS"))
	if err != nil {
		return err
	}
	defer shutdown()

	options, err := options(os.Getenv)
	if err != nil {
		return err
	}
	failure, err := failAfter(os.Getenv("FAIL_AFTER"))
	if err != nil {
		return err
	}
	options.Log = logr.FromSlogHandler(log.Handler())
	err = idcontext.Run(ctx, options, func(ctx context.Context, id idcontext.Identity) error {
		ready.set(true)
		defer ready.set(false)
		log.Info("working", "id", id.ID, "count", id.Count, "epoch", id.Epoch)
		defer log.Info("stopped working", "id", id.ID, "count", id.Count)
		return errors.Join(work(ctx, probes, id, failure), probes.none())
	})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, probes.close())
}

// options reads what the environment says about the id.
func options(getenv func(string) string) (o idcontext.Options, err error) {
	if text := getenv("FENCE_AFTER"); text != "" {
		if o.FenceAfter, err = time.ParseDuration(text); err != nil {
			return o, fmt.Errorf("FENCE_AFTER: use a duration such as 30s: %w", err)
		}
	}
	if text := getenv("KEEP_ON_COUNT_CHANGE"); text != "" {
		if o.KeepOnCountChange, err = strconv.ParseBool(text); err != nil {
			return o, fmt.Errorf("KEEP_ON_COUNT_CHANGE: use true or false: %w", err)
		}
	}
	return o, nil
}

// errFailed is the end of work that FAIL_AFTER asks for.
var errFailed = errors.New("the work failed, because FAIL_AFTER is set")

// failAfter reads how long the work lasts before it fails, 0 if it does not.
func failAfter(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.Join(fmt.Errorf("FAIL_AFTER=%s: use a duration such as 2s", text), err)
	}
	return d, nil
}

// fenced looks at the clock: in strict mode the id may be another pod's by now, whatever this process
// was last told. A workload asks this, or just ctx.Err(), right before it acts on its id.
func fenced(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), idcontext.ErrFenced)
}

// work stands for the workload: it uses the id until ctx ends, and then for as long as it needs to stop.
func work(ctx context.Context, p probe, id idcontext.Identity, failure time.Duration) error {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	var failed <-chan time.Time
	if failure > 0 {
		failed = time.After(failure)
	}
	var stopped <-chan time.Time
	ended := ctx.Done()
	for {
		if err := p.sample(ctx, id); err != nil {
			return err
		}
		select {
		case <-ended:
			if fenced(ctx) {
				return nil
			}
			ended, stopped = nil, time.After(stopTime)
		case <-stopped:
			return nil
		case <-failed:
			return errFailed
		case <-ticker.C:
		}
	}
}
