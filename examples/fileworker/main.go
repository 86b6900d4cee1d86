package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// run works until Kubernetes asks with SIGTERM that the container ends.
func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := follow(ctx, cmp.Or(os.Getenv("IDALLOC_DIR"), identity.DefaultDir))
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// follow is the example proper. The work of one identity has a context of its own, which ends before
// the work of the next one begins.
func follow(ctx context.Context, dir string) error {
	cancel, done := func() {}, closed()
	err := identity.Follow(ctx, dir, func(id identity.Identity) {
		cancel()
		<-done
		var own context.Context
		own, cancel = context.WithCancel(ctx)
		finished := make(chan struct{})
		done = finished
		go func() {
			defer close(finished)
			act(own, dir, id)
		}()
	})
	cancel()
	<-done
	return err
}

// act works under an identity until ctx ends. When it begins, the work under the
// identity before has stopped.
func act(ctx context.Context, dir string, id identity.Identity) {
	if id.Assigned() {
		serve(ctx, id)
		return
	}
	log.Printf("no id now, the state is %s", id.State)
	if url := os.Getenv("DRAIN_URL"); url != "" && id.State == identity.StateDraining && id.Stop != 0 {
		sayDrained(ctx, dir, url, id.Stop)
	}
}

// serve stands for the work: it does what belongs to this id until ctx ends.
func serve(ctx context.Context, id identity.Identity) {
	log.Printf("working as %d of %d (token %d)", id.ID, id.Count, id.Token)
	begin := time.Now()
	<-ctx.Done()
	log.Printf("stopped working as %d of %d after %s", id.ID, id.Count, time.Since(begin).Round(time.Millisecond))
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
