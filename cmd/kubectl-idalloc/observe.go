package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/observe"
	"github.com/idalloc/idalloc/internal/serve"
)

type observer struct {
	*global

	all, once    bool
	log, address string
}

func newObserve(g *global) *cobra.Command {
	o := &observer{global: g}
	cmd := &cobra.Command{
		Use:   "observe",
		Short: "Say where pods leave the protocol; with --once exit 1 if one has",
		Long: `Follows pods and Leases and checks each change against the proof of the
protocol. It changes nothing. It prints a line of JSON for each step that the
protocol does not allow: a warning, because a watch does not show who wrote.
With --audit-log it reads a log of the API server in place of the cluster, and
accuses.`,
		Example: `  kubectl idalloc observe -A --http-address=:9090
  kubectl idalloc observe -n prod --once
  kubectl idalloc observe --audit-log=audit.log`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.all, "all-namespaces", "A", false, "of all namespaces")
	f.BoolVar(&o.once, "once", false, "look at what is there now, and exit with 1 if something is wrong")
	f.StringVar(&o.log, "audit-log", "", "file of audit events to read instead, one a line")
	f.StringVar(&o.address, "http-address", "", "where to serve the metric idalloc_violations_total, such as :9090")
	return cmd
}

// garbage is the GOGC value in percent of observe if the environment has none. What it knows about 10,000 pods lives as long as they do.
const garbage = 25

func (o *observer) run(ctx context.Context, out io.Writer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	level := observe.Warning
	if o.log != "" {
		level = observe.Accusation
	}
	lines := json.NewEncoder(out)
	watched := observe.New(level, time.Now, func(f observe.Finding) {
		if err := lines.Encode(f); err != nil {
			klog.Background().Error(err, "a finding could not be printed")
		}
	})
	if err := o.look(ctx, watched); err != nil {
		return err
	}
	if found := watched.Findings(); (o.once || o.log != "") && len(found) > 0 {
		// Error: exit code 1: `kubectl idalloc observe` found steps that the protocol does not allow.
		// Do: look at the objects that it names.
		return errors.New("the protocol does not allow what was seen; see above")
	}
	return nil
}

// look shows the observer the log, the current cluster, or the cluster until ctx ends.
func (o *observer) look(ctx context.Context, watched *observe.Observer) error {
	if o.log != "" {
		file, err := os.Open(o.log)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // it was only read
		return observe.Audit(file, watched)
	}
	s, namespace, err := o.connect()
	if err != nil {
		return err
	}
	if o.all {
		namespace = ""
	}
	f := &observe.Follower{Metadata: s.Metadata, Dynamic: s.Dynamic, Namespace: namespace, Clock: clock.RealClock{}, Observer: watched}
	if o.once {
		return f.Once(ctx)
	}
	if o.address != "" {
		server := serve.Bounded(violations(watched))
		server.Addr = o.address
		defer server.Close() //nolint:errcheck // the program ends
		go func() {
			if err := server.ListenAndServe(); err != nil && ctx.Err() == nil {
				klog.Background().Error(err, "the metric is not served", "address", o.address)
			}
		}()
	}
	f.Run(ctx, func(err error) { klog.Background().Error(err, "following the cluster again") })
	return nil
}

// violations serves the number of steps that the protocol does not allow, by rule.
func violations(watched *observe.Observer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		found := watched.Findings()
		_, _ = fmt.Fprintln(w, "# HELP idalloc_violations_total Steps that the protocol does not allow.\n# TYPE idalloc_violations_total counter")
		for _, rule := range slices.Sorted(maps.Keys(found)) {
			_, _ = fmt.Fprintf(w, "idalloc_violations_total{rule=%q} %d\n", rule, found[rule])
		}
	})
}
