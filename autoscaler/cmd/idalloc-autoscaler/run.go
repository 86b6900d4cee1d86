package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/election"
	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/metrics"
	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/autoscaler/internal/state"
	"github.com/idalloc/idalloc/autoscaler/internal/workload"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/internal/serve"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// believed: a partition that is faster than the capacity of this many pods is not believed.
const believed = 1e6

type runner struct {
	sources
	*global

	settings      decide.Settings
	monitor       monitor.Monitor
	address       string
	period        time.Duration
	scale, dryRun bool
	elect         bool
}

func newRun(g *global) *cobra.Command {
	r := &runner{global: g}
	cmd := &cobra.Command{
		Use:   "run KIND/NAME --capacity UNITS --max-replicas N",
		Short: "Scale a workload by the load of its partitions",
		Long: `Reads the loads every --period and decides. With --dry-run it logs what it would
do, and needs no right but to get the workload and to list its pods. With
--scale=false it places partitions, leaves the number of pods alone, and shows
what it should be as the metric idalloc_autoscaler_pods_wanted.`,
		Example: `  idalloc-autoscaler run deployment/worker --capacity 500 --max-replicas 20 \
    --source prometheus --source-url http://prometheus:9090 --dry-run \
    --prometheus-query 'sum by (partition) (rate(published_total[1m]))'`,
		Args: cobra.RangeArgs(0, 2),
		RunE: r.run,
	}
	f := cmd.Flags()
	f.StringVar(&r.address, "http-address", ":8080", "address of /metrics and /healthz; empty: none")
	f.DurationVar(&r.period, "period", 5*time.Second, "time between two readings of the source")
	f.DurationVar(&r.monitor.Window, "window", 30*time.Second, "time over which speeds are measured")
	f.DurationVar(&r.monitor.Smooth, "smooth", 0, "time constant of a low-pass filter; 0: none")
	f.DurationVar(&r.monitor.CatchUp, "catch-up", 0, "time to work off what waits; 0: that does not count")
	f.BoolVar(&r.scale, "scale", true, "set the number of pods")
	f.BoolVar(&r.dryRun, "dry-run", false, "log what would be done, and write nothing")
	f.BoolVar(&r.elect, "leader-elect", true, "act only as the leader, by a Lease")
	bindSettings(f, &r.settings)
	r.bind(f)
	return cmd
}

func (r *runner) run(cmd *cobra.Command, args []string) error {
	log, err := r.log.Logger()
	if err != nil {
		return err
	}
	if err := errors.Join(checkSettings(r.settings, r.period), r.check()); err != nil {
		return err
	}
	source, err := r.source()
	if err != nil {
		return err
	}
	ref, config, err := connectTo(&r.Flags, args)
	if err != nil {
		return err
	}
	s, err := store.New(connect.Alive(config, 0), clock.RealClock{})
	if err != nil {
		return err
	}
	w := workload.Workload{Store: s, Ref: ref}
	if err := workload.CanScale(w.Ref); err != nil && r.scale && !r.dryRun {
		return cli.Usage(err)
	}
	r.monitor.Most = believed * r.settings.Capacity
	name := podName()
	id, key := state.Identity(name)
	shown, latest := metrics.New(version, r.settings, ref), &state.Latest{Settings: r.settings, Ref: ref, Key: key}
	if err := r.serve(cmd.Context(), shown, latest); err != nil {
		return err
	}
	l := &loop.Loop{
		Workload: w, Source: source, Monitor: &r.monitor, Decider: &decide.Decider{Settings: r.settings}, Period: r.period,
		DryRun: r.dryRun, KeepPods: !r.scale, Reporter: name, Clock: clock.RealClock{}, Log: log,
		Observe: func(report loop.Report) {
			shown.Observe(report)
			latest.Observe(report)
		},
	}
	if r.dryRun || !r.elect {
		shown.Leads(true)
		return l.Run(cmd.Context())
	}
	return election.Candidate{
		Config: config, Namespace: w.Ref.Namespace, Name: leaseName(w.Ref), Identity: id, Log: log,
		Leads: func(leads bool) {
			shown.Leads(leads)
			latest.Leads(leads)
		},
	}.Run(cmd.Context(), l.Run)
}

func (r *runner) check() error {
	var errs []error
	for name, d := range map[string]time.Duration{"period": r.period, "window": r.monitor.Window} {
		if d <= 0 {
			errs = append(errs, cli.Usagef("--%s %s: use a time above 0", name, d))
		}
	}
	for name, d := range map[string]time.Duration{"smooth": r.monitor.Smooth, "catch-up": r.monitor.CatchUp} {
		if d < 0 {
			errs = append(errs, cli.Usagef("--%s %s: use 0 or more", name, d))
		}
	}
	if totals := r.kind == "kafka" || r.kind == "rabbitmq"; totals && r.period > 2*r.monitor.Window {
		errs = append(errs, cli.Usagef("--period %s: use at most twice --window %s, or two readings are too far apart to tell a speed", r.period, r.monitor.Window))
	}
	if r.monitor.CatchUp > 0 && r.kind != "rabbitmq" && r.kafka.Group == "" {
		errs = append(errs, cli.Usagef("--catch-up %s: nothing says how much waits: use --source=rabbitmq, or --source=kafka with --kafka-group", r.monitor.CatchUp))
	}
	counts := r.rabbitmq.Interval
	switch {
	case r.kind != "rabbitmq":
	case counts <= 0:
		errs = append(errs, cli.Usagef("--rabbitmq-interval %s: use a time above 0", counts))
	case r.monitor.Window < 3*counts:
		errs = append(errs, cli.Usagef("--window %s: RabbitMQ counts messages each %s, and between two counts a steady load reads as nothing: use %s or more",
			r.monitor.Window, counts, 3*counts))
	}
	return errors.Join(errs...)
}

// leaseName returns the name of the Lease. All autoscalers of a workload share it.
func leaseName(ref kinds.Ref) string {
	return "idalloc-autoscaler-" + strings.ToLower(ref.Kind) + "." + ref.Name
}

// podName returns the name of the pod, or a name that is very likely unique.
func podName() string {
	if pod := os.Getenv("POD_NAME"); pod != "" {
		return pod
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "-" + rand.String(5)
}

// serve answers scrapes and probes until ctx ends.
func (r *runner) serve(ctx context.Context, shown *metrics.Metrics, latest *state.Latest) error {
	if r.address == "" {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", shown.Handler())
	mux.Handle("GET "+state.Path, latest)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.address)
	if err != nil {
		return fmt.Errorf("--http-address: %w", err)
	}
	server := serve.Bounded(mux)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	context.AfterFunc(ctx, func() { _ = server.Close() })
	log := logr.FromContextOrDiscard(ctx)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error(err, "the HTTP server has ended")
		}
	}()
	return nil
}
