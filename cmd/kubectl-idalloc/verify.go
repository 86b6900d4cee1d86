package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
)

func newVerify(g *global) *cobra.Command {
	var (
		o        output
		patience time.Duration
		warnings bool
	)
	cmd := &cobra.Command{
		Use:   "verify KIND/NAME [--wait=DURATION]",
		Short: "Check a workload against its live pods; exit 1 if something is wrong",
		Long: `Checks that each id is held by exactly one live pod, as the pods' receipts and the assignment say. It
changes nothing. It looks at the Leases of strict mode, too, if it may list them. Each finding says what to do; docs/operations.md explains them.`,
		Example:           "  kubectl idalloc verify deployment/worker -n prod --wait=1m",
		ValidArgsFunction: g.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := o.printer(); err != nil {
				return err
			}
			if patience < 0 {
				return usageError{fmt.Errorf("--wait %s: use 0 or more", patience)}
			}
			s, ref, err := g.one(args)
			if err != nil {
				return err
			}
			report, err := inspect.Await(cmd.Context(), s, ref, patience, warnings, klog.Background())
			if err != nil {
				return err
			}
			if o.people() {
				err = report.Table(cmd.OutOrStdout())
			} else {
				err = o.items(cmd.OutOrStdout(), false, item{workload(ref), "Report", report})
			}
			return errors.Join(err, verdict(ref, report, warnings))
		},
	}
	o.flags(cmd)
	cmd.Flags().DurationVar(&patience, "wait", 0, "how long to check again at every change while something is wrong; 0 checks once")
	cmd.Flags().BoolVar(&warnings, "fail-on-warnings", false, "exit with 1 for warnings, too")
	return cmd
}

func verdict(ref store.Ref, report inspect.Report, warnings bool) error {
	switch {
	case !report.OK:
		return fmt.Errorf("%s in namespace %s: findings: %d; see above", ref, ref.Namespace, len(report.Findings))
	case warnings && len(report.Warnings) > 0:
		return fmt.Errorf("%s in namespace %s: warnings: %d, and --fail-on-warnings is set; see above", ref, ref.Namespace, len(report.Warnings))
	}
	return nil
}

func newGC(g *global) *cobra.Command {
	var (
		o      output
		dryRun bool
	)
	cmd := &cobra.Command{
		Use:   "gc KIND/NAME [--dry-run]",
		Short: "Free the slots of a workload's dead holders, and say why for each",
		Long: `Frees the slots of dead holders. A holder is dead when its pod is gone, Succeeded or Failed. Waiting pods
free such slots by themselves. The slot of a live pod that locks it stays that pod's.`,
		Example: `  kubectl idalloc gc deployment/worker -n prod --dry-run
  kubectl idalloc gc sts/db -o json`,
		ValidArgsFunction: g.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := o.printer(); err != nil {
				return err
			}
			s, ref, err := g.one(args)
			if err != nil {
				return err
			}
			backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 1, Cap: 5 * time.Second, Steps: 20}
			result, err := gc.Sweep(cmd.Context(), s, ref, backoff, dryRun)
			if err != nil {
				return err
			}
			swept := sweepOf(ref, result, dryRun)
			if o.people() {
				return swept.text(cmd.OutOrStdout())
			}
			return o.items(cmd.OutOrStdout(), false, item{workload(ref), "Sweep", swept})
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what gc would free, and change nothing")
	return cmd
}

// sweep is the result of gc as it is printed.
type sweep struct {
	Owner     string   `json:"owner"`
	Namespace string   `json:"namespace"`
	DryRun    bool     `json:"dryRun,omitempty"`
	Freed     []victim `json:"freed"`
	Restored  bool     `json:"restored"`
}

type victim struct {
	ID     int    `json:"id"`
	Pod    string `json:"pod"`
	Reason string `json:"reason"`
}

func sweepOf(ref store.Ref, result gc.Result, dryRun bool) sweep {
	s := sweep{Owner: ref.String(), Namespace: ref.Namespace, DryRun: dryRun, Freed: []victim{}, Restored: result.Restored}
	for _, v := range result.Victims {
		s.Freed = append(s.Freed, victim{v.ID, v.Pod, v.Reason})
	}
	return s
}

func (s sweep) text(w io.Writer) error {
	done, restored := "freed", "restored the assignment, which somebody else had changed, from the pods' receipts"
	if s.DryRun {
		done, restored = "would free", "the assignment was changed by somebody else; would restore it from the pods' receipts"
	}
	var errs []error
	say := func(format string, args ...any) {
		_, err := fmt.Fprintf(w, format, args...)
		errs = append(errs, err)
	}
	for _, v := range s.Freed {
		say("%s slot %d of %s: %s: %s\n", done, v.ID, v.Pod, s.Owner, v.Reason)
	}
	if s.Restored {
		say("%s: %s\n", s.Owner, restored)
	}
	if len(s.Freed) == 0 && !s.Restored {
		say("%s: no dead holders\n", s.Owner)
	}
	return errors.Join(errs...)
}
