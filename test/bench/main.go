package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/bench/played"
	"github.com/idalloc/idalloc/test/bench/table"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

type options struct {
	parts     []part
	sizes     []int
	protocols []protocol
	limit     time.Duration
	restart   int
	// unavailable is maxUnavailable of a restart.
	unavailable string
	observers   int
	rounds      int
	// neighbours is how many other pods there are in the namespace.
	neighbours int
	// members and partitions are of a workload with partitions.
	members, partitions int
	// planners are who plans in restarts and shares, by turns.
	planners []planner
	dir      string
}

// part is one of the measurements. It returns the lines of its table, the header first, even if it fails.
type part struct {
	name, title string
	run         func(ctx context.Context, env *suite.Suite, o options) ([][]string, error)
}

func parts() []part {
	return []part{
		{"claims", "Claims at once. In each run no id went to two pods, and what the API server had at the end was what the pods believed", claims},
		{"restart", "Rolling restart, maxSurge 25%", restart},
		{"propagation", "Propagation", propagation},
		{"footprint", "Footprint of idalloc watch", footprint},
		{"neighbours", "Many pods in one namespace", neighbours},
		{"shares", "Replicas come and go", shares},
	}
}

func main() {
	o, err := parse()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.SetLogger(logr.Discard()) // client-go's word on every connection that a run ends
	if err := o.run(ctx); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // stop only stops listening for signals
	}
}

func parse() (o options, err error) {
	partName, protocolName := func(p part) string { return p.name }, func(p protocol) string { return p.name }
	chosen := flag.String("only", list(parts(), partName), "which parts, a list")
	sizes := flag.String("n", "10,50,100,300,1000", "claims: how many pods, a list")
	rows := flag.String("protocol", list(protocols(), protocolName), "claims: which protocols, a list")
	by := flag.String("by", list(planners(), planner.name), "restart, shares: who plans, a list")
	flag.DurationVar(&o.limit, "limit", 4*time.Minute, "claims: how long one protocol may take at one size")
	flag.IntVar(&o.restart, "replicas", 300, "restart: how many replicas; a fifth of them with maxUnavailable 0")
	flag.StringVar(&o.unavailable, "unavailable", "25%", "restart: maxUnavailable; few at a time show how long one hand-over takes")
	flag.IntVar(&o.observers, "observers", 100, "propagation: how many instances")
	flag.IntVar(&o.rounds, "rounds", 20, "propagation: how many writes")
	flag.IntVar(&o.neighbours, "neighbours", 5000, "neighbours: how many other pods")
	flag.IntVar(&o.members, "members", 300, "shares: how many replicas")
	flag.IntVar(&o.partitions, "partitions", placement.MaxCount, "shares: how many partitions")
	flag.StringVar(&o.dir, "out", "", "write the tables as CSV into this directory")
	flag.Parse()
	for field := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-n %s: give numbers of pods such as 10,50", *sizes)
		}
		o.sizes = append(o.sizes, n)
	}
	if o.protocols, err = choose("-protocol", *rows, protocols(), protocolName); err != nil {
		return o, err
	}
	if o.planners, err = choose("-by", *by, planners(), planner.name); err != nil {
		return o, err
	}
	o.parts, err = choose("-only", *chosen, parts(), partName)
	return o, err
}

// list returns the names of all, separated by commas.
func list[T any](all []T, name func(T) string) string {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = name(t)
	}
	return strings.Join(names, ",")
}

// choose returns those of all that list names.
func choose[T any](flagName, value string, all []T, name func(T) string) (chosen []T, err error) {
	for field := range strings.SplitSeq(value, ",") {
		i := slices.IndexFunc(all, func(t T) bool { return name(t) == field })
		if i < 0 {
			return nil, fmt.Errorf("%s %s: there is no %q", flagName, value, field)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func (o options) run(ctx context.Context) (failed error) {
	for _, p := range o.parts {
		lines, err := runPart(ctx, p, o)
		if err = errors.Join(err, table.Print(os.Stdout, p.title, lines)); o.dir != "" {
			err = errors.Join(err, table.CSV(filepath.Join(o.dir, p.name+".csv"), lines))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

// runPart gives each part a control plane of its own, so that none pays for what another left behind.
func runPart(ctx context.Context, p part, o options) (lines [][]string, err error) {
	env, err := played.Boot(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	return p.run(ctx, env, o)
}

// progressf says what is under way.
func progressf(format string, args ...any) { _, _ = fmt.Fprintf(os.Stderr, format+"\n", args...) }
