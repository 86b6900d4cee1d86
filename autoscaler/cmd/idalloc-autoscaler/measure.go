package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/autoscaler/internal/capacity"
	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/workload"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// counts is the minimum number of RabbitMQ's counts that a measurement must span. They come up to three counts late, which is then a tenth.
const counts = 30

type measurer struct {
	sources
	*global

	period, long time.Duration
}

func newMeasure(all *global) *cobra.Command {
	m := &measurer{global: all}
	cmd := &cobra.Command{
		Use:   "measure KIND/NAME",
		Short: "Measure what a pod can do: the value of --capacity",
		Long: `Reads for a while how much comes and how much waits, and prints what each pod
worked off. A pod is busy if enough for ten seconds waits in each of its
partitions all the time. What the slowest busy pod worked off is printed as
--capacity. If no pod was busy, the exit code is 1.

The source must say how much waits: rabbitmq, or kafka with --kafka-group.
Nothing is written. Needed are the verbs get on the workload and list on pods.`,
		Example: `  kubectl scale deployment/worker --replicas=0   # work piles up
  kubectl scale deployment/worker --replicas=2
  idalloc-autoscaler measure deployment/worker --source=rabbitmq \
    --source-url=http://rabbitmq:15672 --rabbitmq-prefix=orders-P`,
		Args: cobra.RangeArgs(0, 2),
		RunE: m.run,
	}
	f := cmd.Flags()
	f.DurationVar(&m.period, "period", 5*time.Second, "time between two readings of the source")
	f.DurationVar(&m.long, "for", 3*time.Minute, "how long to measure")
	m.bind(f)
	return cmd
}

func (m *measurer) check() error {
	var errs []error
	if m.period <= 0 || m.long < m.period {
		errs = append(errs, cli.Usagef("--for %s, --period %s: use times above 0, and at least one period", m.long, m.period))
	}
	if m.kind == "prometheus" || (m.kind == "kafka" && m.kafka.Group == "") {
		errs = append(errs, cli.Usagef("--source %s: nothing says how much waits: use rabbitmq, or kafka with --kafka-group and --kafka-measure=records", m.kind))
	}
	if least := counts * m.rabbitmq.Interval; m.kind == "rabbitmq" && m.long < least {
		errs = append(errs, cli.Usagef("--for %s: RabbitMQ counts messages each %s: use %s or more", m.long, m.rabbitmq.Interval, least))
	}
	return errors.Join(errs...)
}

func (m *measurer) run(cmd *cobra.Command, args []string) error {
	if err := m.check(); err != nil {
		return err
	}
	source, err := m.source()
	if err != nil {
		return err
	}
	ref, config, err := connectTo(&m.Flags, args)
	if err != nil {
		return err
	}
	s, err := store.New(connect.Alive(config, 0), clock.RealClock{})
	if err != nil {
		return err
	}
	pods, err := m.measure(cmd.Context(), workload.Workload{Store: s, Ref: ref}, source)
	if err != nil {
		return err
	}
	return capacity.Print(cmd.OutOrStdout(), pods)
}

// measure reads until the time is over. It begins when something waits in each partition, or after a third of the time, because RabbitMQ has no statistics of
// new queues at first, and then late ones. If a later reading fails, measure fails: how much waited at that time is unknown.
func (m *measurer) measure(ctx context.Context, w workload.Workload, source loop.Source) ([]capacity.Pod, error) {
	meter, begin, asked := capacity.Meter{}, time.Time{}, time.Now()
	tick := time.NewTicker(m.period)
	defer tick.Stop()
	for {
		seen, err := w.Read(ctx)
		if err != nil {
			return nil, err
		}
		if len(seen.Row) == 0 {
			return nil, fmt.Errorf("no pod of %s in namespace %s works on partitions: %s", w.Ref, w.Ref.Namespace, seen.Trouble)
		}
		switch r, err := source.Read(ctx); {
		case err != nil && (!begin.IsZero() || time.Since(asked) >= m.long):
			return nil, fmt.Errorf("the loads cannot be read: %w", err)
		case err == nil && (!begin.IsZero() || capacity.Busy(r, seen.Row) || time.Since(asked) >= m.long/3):
			if begin.IsZero() {
				begin = r.At
			}
			meter.Add(r, seen.Row)
			if r.At.Sub(begin) >= m.long {
				return meter.Pods(), nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
