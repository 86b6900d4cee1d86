package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/autoscaler/internal/rehearse"
	"github.com/idalloc/idalloc/internal/cli"
)

func newPlan() *cobra.Command {
	var o rehearse.Options
	var from string
	cmd := &cobra.Command{
		Use:   "plan --from FILE --capacity UNITS --max-replicas N",
		Short: "Print what would be done with recorded loads, and why",
		Long: `Plays recorded loads against a workload that exists only in memory. It prints a
line for each decision, and a summary.

The file is CSV. Its first line names the columns: the time, and the partitions
0, 1, 2 and so on. Each further line is a moment: seconds, or a time such as
2026-11-23T06:00:00Z, and the speed of each partition in units per second from
then on. An empty field means that nothing was measured.`,
		Example: "  idalloc-autoscaler plan --from loads.csv --capacity 500 --max-replicas 20",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(checkSettings(o.Settings, o.Period), checkPlan(o, from)); err != nil {
				return err
			}
			return plan(cmd.OutOrStdout(), o, from)
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "file with the loads, required; - is standard input")
	f.IntVar(&o.Pods, "pods", 1, "number of pods at first")
	f.DurationVar(&o.Period, "period", 5*time.Second, "time between two decisions")
	f.DurationVar(&o.Join, "join", 20*time.Second, "time until a new pod can own partitions")
	f.DurationVar(&o.Move, "move", 5*time.Second, "time until partitions have moved")
	bindSettings(f, &o.Settings)
	return cmd
}

func checkPlan(o rehearse.Options, from string) error {
	switch {
	case from == "":
		return cli.Usagef("--from: name a file with loads")
	case o.Pods < 1:
		return cli.Usagef("--pods %d: use 1 or more", o.Pods)
	case o.Period <= 0 || o.Join < 0 || o.Move < 0:
		return cli.Usagef("--period %s, --join %s, --move %s: no time may be negative, and the first not 0", o.Period, o.Join, o.Move)
	}
	return nil
}

// plan prints a rehearsal.
func plan(out io.Writer, o rehearse.Options, from string) error {
	in := os.Stdin
	if from != "-" {
		file, err := os.Open(from) //nolint:gosec // the user's own file
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	loads, err := rehearse.Read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	summary := rehearse.Play(o, loads, func(l rehearse.Line) {
		if err == nil {
			_, err = fmt.Fprintln(out, l)
		}
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, summary)
	return err
}
