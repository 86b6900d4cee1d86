package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/overlap"
)

// stopTime stands for what a real program needs to finish a request or flush a buffer. The id is
// still in use during it. STOP_TIME sets another one.
func stopTime() (time.Duration, error) {
	return time.ParseDuration(cmp.Or(os.Getenv("STOP_TIME"), "50ms"))
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("say what to do: files, linked, partitions, share, env, stopped, print, variable, unless or crash")
	}
	switch mode := args[0]; mode {
	case "print":
		return printFiles(os.Stdout, directory())
	case "variable":
		_, err := fmt.Fprintln(os.Stdout, os.Getenv(args[len(args)-1]))
		return err
	case "crash":
		return crashContainer()
	case "unless": // the rest is the command, unless the container has this flag
		if slices.Contains(args[2:], args[1]) {
			return errors.New("told to fail with " + args[1])
		}
		return run(args[3:])
	case "files":
		return logged(func(ctx context.Context, w *overlap.Writer) error {
			return besideProgram(ctx, w, directory(), args[1:])
		})
	case "linked":
		return logged(workLinked)
	case "partitions":
		return inLogs(workOnPartitions)
	case "share":
		return inLogs(func(ctx context.Context, logs, pod string) error { return workByFiles(ctx, directory(), logs, pod) })
	case "stopped":
		return askStopped(context.Background())
	case "env":
		return inLogs(workByEnvironment)
	default:
		return fmt.Errorf("%q is nothing that this program can do", mode)
	}
}

// directory is where the idalloc container publishes the files.
func directory() string { return cmp.Or(os.Getenv("IDALLOC_DIR"), identity.DefaultDir) }

// logged calls work with the pod's log. The context ends when the container is told to stop.
func logged(work func(context.Context, *overlap.Writer) error) error {
	return inLogs(func(ctx context.Context, dir, pod string) error {
		w, err := overlap.NewWriter(dir, pod, os.Getenv("POD_UID"))
		if err != nil {
			return err
		}
		return errors.Join(work(ctx, w), w.Close())
	})
}

// inLogs calls work with the directory of the logs and the pod's name. The context ends when the container is told to stop.
func inLogs(work func(ctx context.Context, dir, pod string) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	dir := os.Getenv("PROBE_DIR")
	if dir == "" {
		return errors.New("set PROBE_DIR to the directory of the logs")
	}
	pod, err := podName()
	if err != nil {
		return err
	}
	return work(ctx, dir, pod)
}

func podName() (string, error) {
	if name := os.Getenv("POD_NAME"); name != "" {
		return name, nil
	}
	return os.Hostname()
}

// act works under an id until ctx ends, and then for as long as the work needs to stop. In strict mode it
// asks before each step whether it still may.
func act(ctx context.Context, w *overlap.Writer, id, count int, token int64) error {
	takes, err := stopTime()
	if err != nil {
		return err
	}
	shows := func() (int, int, int64) {
		if fenced(ctx) {
			return overlap.Nothing()
		}
		return id, count, token
	}
	return errors.Join(w.Until(stopped(ctx, takes), shows), failure(ctx), w.Sample(shows), w.Sample(overlap.Nothing))
}

// fenced looks at the clock: in strict mode the id may be another pod's by now, whatever this process
// was last told.
func fenced(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return ctx.Err() != nil && errors.Is(cause, idalloc.ErrFenced)
}

// stopped is closed when the work has stopped: at once if it was fenced or has failed, else that long after ctx ended.
func stopped(ctx context.Context, takes time.Duration) <-chan struct{} {
	over := make(chan struct{})
	context.AfterFunc(ctx, func() {
		if fenced(ctx) || failure(ctx) != nil {
			takes = 0
		}
		time.AfterFunc(takes, func() { close(over) })
	})
	return over
}
