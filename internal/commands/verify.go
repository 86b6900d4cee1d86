package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/check"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

type verifier struct {
	Program

	patience time.Duration
	warnings bool
	kinds    []string
}

// NewVerify returns the command verify.
func NewVerify(p Program) *cobra.Command {
	v := &verifier{Program: p}
	cmd := p.command(&cobra.Command{
		Use:   "verify KIND/NAME [--wait=DURATION]",
		Short: "Check a workload and its pods; exit 1 if something is wrong",
		Long: `Checks that exactly one live pod holds each id, and that each partition is
worked on, as the assignment and the pods' receipts say. It changes nothing. It
exits with 1 if something is wrong. Each finding has a name, and
docs/messages.md says what to do about it. Warnings change the exit code only
with --fail-on-warnings.

Pods that start or end are between two states for a moment. With --wait, verify
checks again at every change until nothing is wrong or the time is over.`,
		Example: "verify deployment/worker -n prod --wait=1m",
	}, v.run)
	f := cmd.Flags()
	f.DurationVar(&v.patience, "wait", 0, "time to check again at every change; 0 checks once")
	f.BoolVar(&v.warnings, "fail-on-warnings", false, "also exit with 1 for warnings")
	f.StringSliceVar(&v.kinds, "kind", nil, "further kinds, as of idalloc-controller")
	return cmd
}

func (v *verifier) run(cmd *cobra.Command, args []string, out *Output, log logr.Logger) error {
	if v.patience < 0 {
		return cli.Usagef("--wait %s: use 0 or more", v.patience)
	}
	s, ref, err := v.connect(cmd.Context(), args, v.kinds...)
	if err != nil {
		return err
	}
	report, err := inspect.Await(cmd.Context(), s, ref, v.patience, v.warnings, log)
	if err != nil {
		return err
	}
	if out.ForPeople() {
		err = report.Table(cmd.OutOrStdout())
	} else {
		err = out.Items(cmd.OutOrStdout(), false, Item{ref, "Report", report})
	}
	if err = errors.Join(err, v.verdict(ref, report)); err != nil || report.Unused {
		return err
	}
	return remark(cmd.Context(), s, ref, cmd.ErrOrStderr())
}

// remark warns on errs if the admission policies are missing or do not apply. That is not about the workload, so it is no warning of the report.
func remark(ctx context.Context, s *store.Store, ref kinds.Ref, errs io.Writer) error {
	missing := check.PolicyMissing(ctx, s)
	if missing == "" {
		missing = passes(ctx, s, ref)
	}
	if missing == "" {
		return nil
	}
	_, err := fmt.Fprintln(errs, "warning: "+missing)
	return err
}

// passes explains that the policies do not limit one of the workload's pods. It returns "" if they do, and after an error.
func passes(ctx context.Context, s *store.Store, ref kinds.Ref) string {
	receipts, _, err := s.Receipts(ctx, ref, store.Sought{})
	if err != nil || len(receipts) == 0 {
		return ""
	}
	pod, err := s.GetFullPod(ctx, ref.Namespace, receipts[0].Pod)
	if err != nil {
		return ""
	}
	return check.PolicyPasses(ctx, s, pod)
}

func (v *verifier) verdict(ref kinds.Ref, report inspect.Report) error {
	switch {
	case !report.OK:
		// Error: exit code 1: `verify` has found something. The findings are on standard output.
		// Do: see the [findings](#findings-of-verify).
		return fmt.Errorf("%s in namespace %s: findings: %d; see above", ref, ref.Namespace, len(report.Findings))
	case v.warnings && len(report.Warnings) > 0:
		// Error: exit code 1: `verify` warns on standard output, and `--fail-on-warnings` is set.
		return fmt.Errorf("%s in namespace %s: warnings: %d, and --fail-on-warnings is set; see above", ref, ref.Namespace, len(report.Warnings))
	}
	return nil
}
