package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

type options struct {
	sizes     []int
	protocols []protocol
	timeout   time.Duration
	csv       bool
	footprint bool
}

func main() {
	o, err := parse()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // stop only stops listening for signals
	}
}

func parse() (options, error) {
	o := options{}
	sizes := flag.String("n", "10,50,100", "how many pods, a list")
	names := flag.String("protocol", "idalloc,cdap", "which protocols, a list")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long one run may take")
	flag.BoolVar(&o.csv, "csv", false, "print comma-separated values")
	flag.BoolVar(&o.footprint, "footprint", false, "measure the command instead: its size, and the memory of a watcher with 100 replicas")
	flag.Parse()
	for field := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-n %s: give numbers of pods such as 10,50", *sizes)
		}
		o.sizes = append(o.sizes, n)
	}
	known := []protocol{idalloc{}, cdap{}}
	for field := range strings.SplitSeq(*names, ",") {
		i := slices.IndexFunc(known, func(p protocol) bool { return p.name() == field })
		if i < 0 {
			return o, fmt.Errorf("-protocol %s: there is no %q", *names, field)
		}
		o.protocols = append(o.protocols, known[i])
	}
	return o, nil
}

func run(ctx context.Context, o options, out, progress io.Writer) (err error) {
	env, err := boot(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	if o.footprint {
		return footprint(ctx, env, out)
	}
	var results []result
	for _, n := range o.sizes {
		for _, p := range o.protocols {
			if _, err := fmt.Fprintf(progress, "%d pods, %s\n", n, p.name()); err != nil {
				return err
			}
			r, err := measure(ctx, env, p, n, o.timeout)
			if err != nil {
				return fmt.Errorf("%d pods, %s: %w", n, p.name(), err)
			}
			results = append(results, r)
		}
	}
	if o.csv {
		return writeCSV(out, results)
	}
	return writeTable(out, results)
}

// boot starts a control plane. There is no node: pods stay Pending, and processes of theirs would only
// take the time of two cores away from what is measured.
func boot(ctx context.Context) (*suite.Suite, error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, err
	}
	env := &suite.Suite{ControlPlane: plane}
	if env.Client, err = kubernetes.NewForConfig(plane.Config()); err != nil {
		return nil, errors.Join(err, env.Stop())
	}
	return env, nil
}
