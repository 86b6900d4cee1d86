package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
)

func main() {
	show := flag.Bool("print", false, "print the files and exit")
	crash := flag.Bool("crash", false, "let process 1 of the container crash and exit")
	flag.Parse()
	dir := os.Getenv("IDALLOC_DIR")
	if dir == "" {
		dir = identity.DefaultDir
	}
	var err error
	switch {
	case *show:
		err = printFiles(os.Stdout, dir)
	case *crash:
		err = crashContainer()
	default:
		err = work(dir)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// crashContainer ends process 1 the way a bug would: a Go program answers this signal with a stack
// dump and exit code 2. SIGKILL would do nothing, the kernel protects process 1 from it inside its
// own container.
func crashContainer() error {
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		return errors.New("-crash is for use in a container: here, process 1 is the whole machine's")
	}
	return syscall.Kill(1, syscall.SIGQUIT)
}

// work runs until the container is told to stop, and then ends at once.
func work(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- follow(ctx, dir) }()
	if probes := os.Getenv("PROBE_DIR"); probes != "" {
		go func() { ended <- probe(ctx, dir, probes) }()
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// follow is the example proper. The work of one identity has a context of its own, which ends before
// the work of the next one begins.
func follow(ctx context.Context, dir string) error {
	cancel, done := func() {}, closed()
	var last identity.Identity // the one that was worked under last
	err := identity.Follow(ctx, dir, func(id identity.Identity) {
		cancel()
		<-done
		var own context.Context
		own, cancel = context.WithCancel(ctx)
		finished := make(chan struct{})
		done = finished
		if id.Assigned() {
			last = id
		}
		epoch := last.Epoch
		go func() {
			defer close(finished)
			act(own, dir, id, epoch)
		}()
	})
	cancel()
	<-done
	return err
}

// act does what is to be done about an identity until ctx ends. When it begins, the work under the
// identity before, whose epoch it is told, has stopped.
func act(ctx context.Context, dir string, id identity.Identity, epoch int64) {
	if id.Assigned() {
		serve(ctx, id)
		return
	}
	log.Printf("no id now, the state is %s", id.State)
	if url := os.Getenv("DRAIN_URL"); url != "" && id.State == identity.StateDraining {
		sayDrained(ctx, dir, url, epoch)
	}
}

// serve stands for the work: it does what belongs to this id until ctx ends.
func serve(ctx context.Context, id identity.Identity) {
	log.Printf("working as %d of %d (epoch %d)", id.ID, id.Count, id.Epoch)
	begin := time.Now()
	<-ctx.Done()
	log.Printf("stopped working as %d of %d after %s", id.ID, id.Count, time.Since(begin).Round(time.Millisecond))
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func printFiles(out io.Writer, dir string) error {
	for _, name := range []string{"id", "count", "epoch", "state", identity.FileName, "env"} {
		b, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // the operator names the directory
		switch {
		case errors.Is(err, os.ErrNotExist):
			_, err = fmt.Fprintf(out, "==> %s: no such file\n", name)
		case err == nil:
			_, err = fmt.Fprintf(out, "==> %s\n%s", name, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
