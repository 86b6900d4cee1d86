// Demo shows idalloc at work on a control plane of its own, in half a minute and without a cluster:
//
//	make demo
//
// A Deployment whose pods have one label gets ids, loses a pod, rolls and grows. The API server, the controllers, idalloc-controller and kubectl are
// real; pods run as processes of this machine (test/envtest/node). Every change is a line.
//
// At the end test/overlap compares the logs of the programs, which know nothing of Kubernetes. The demo fails if two pods
// ever showed one id at once, or if a part does not end in time. Nothing is left running, not even after Ctrl-C.
//
// With -stay, which is "make cluster", it plays nothing, and the cluster stays until Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stay := flag.Bool("stay", false, "keep the cluster until Ctrl-C, and say how to use it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the demo at once; what it started dies with it
	err := run(ctx, &stage{out: os.Stdout}, *stay)
	if ctx.Err() != nil && (err != nil || *stay) {
		fmt.Fprintln(os.Stderr, "\ninterrupted; everything was stopped")
		os.Exit(128 + int(syscall.SIGINT))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run plays the demo, or keeps the cluster, and stops everything that it started, whatever happens.
func run(ctx context.Context, s *stage, stay bool) (err error) {
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.boot(ctx); err != nil {
		return err
	}
	if stay {
		return s.wait(ctx)
	}
	return s.play(ctx)
}
