// Demo shows idalloc at work on a control plane of its own, in about a minute and without a cluster:
//
//	make demo
//
// A Deployment starts with five pods, scales to eight, loses two pods and scales to three. The API server, the controllers
// and the idalloc command are real; the pods run as processes of this machine (test/envtest/node). Every change is a line.
//
// At the end test/overlap compares the logs of the programs, which know nothing of Kubernetes. The demo fails if two pods
// ever showed one id at once, or if a phase does not end in time. Nothing is left running, not even after Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the demo at once; what it started dies with it
	err := run(ctx, &display{out: os.Stdout, clock: time.Now(), printed: map[string]row{}})
	if err != nil && ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "\ninterrupted; everything was stopped")
		os.Exit(128 + int(syscall.SIGINT))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run plays the demo and stops everything that it started, whatever happens.
func run(ctx context.Context, d *display) (err error) {
	s := &stage{display: d}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.boot(ctx); err != nil {
		return err
	}
	return s.play(ctx)
}
