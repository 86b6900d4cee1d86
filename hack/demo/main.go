package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const interrupted = 130

func main() {
	plain := flag.Bool("plain", false, "print lines even on a terminal")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the demo at once; what it started dies with it
	os.Exit(exitCode(ctx, os.Stderr, run(ctx, newDisplay(os.Stdout, *plain))))
}

func exitCode(ctx context.Context, stderr io.Writer, err error) int {
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(stderr, "\ninterrupted; everything was stopped")
		return interrupted
	default:
		_, _ = fmt.Fprintln(stderr, "demo:", err)
		return 1
	}
}

// run plays the demo and stops everything that it started, whatever happens.
func run(ctx context.Context, d display) (err error) {
	defer func() { err = errors.Join(err, d.close()) }()
	s := &stage{display: d}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.boot(ctx); err != nil {
		return err
	}
	return play(ctx, s)
}
