package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/internal/enable"
)

type releaser struct {
	*global
	*commands.Output

	dryRun string
}

func newRelease(g *global) *cobra.Command {
	r := &releaser{global: g}
	cmd := &cobra.Command{
		Use:   "release KIND/NAME",
		Short: "Take out of a pod template what asks for an id",
		Long: `Takes out of the pod template of one workload the labels that ask for an id, and
the gate, variables and volume of inject --by=controller. The workload
rolls, and its new pods have no id. It deletes no pod, and says how to delete
pods that keep waiting at the gate.`,
		Example: `  kubectl idalloc release deployment/worker -n prod
  kubectl idalloc release deploy/worker --dry-run=client -o yaml`,
		ValidArgsFunction: g.completeAny,
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	r.Output = commands.NewOutput(cmd, formats())
	bindDryRun(cmd, &r.dryRun)
	return cmd
}

func (r *releaser) run(ctx context.Context, args []string, out, errs io.Writer) error {
	if err := r.Check(); err != nil {
		return err
	}
	if err := checkDryRun(r.dryRun); err != nil {
		return err
	}
	s, ref, err := r.one(args)
	if err != nil {
		return err
	}
	options := metav1.UpdateOptions{FieldManager: enable.FieldManager}
	if r.dryRun == "server" {
		options.DryRun = []string{metav1.DryRunAll}
	}
	var plan enable.Plan
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		whole, err := s.GetWhole(ctx, ref)
		if err != nil {
			return err
		}
		if plan, err = enable.Release(ref, whole); err != nil || len(plan.Objects) == 0 || r.dryRun == "client" {
			return err
		}
		if plan.Objects[0], err = s.Dynamic.Resource(ref.GVR()).Namespace(ref.Namespace).Update(ctx, plan.Objects[0], options); err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, note := range plan.Notes {
		if _, err := fmt.Fprintln(errs, "note: "+note); err != nil {
			return err
		}
	}
	return printChanged(out, r.Output, "released", r.dryRun, plan.Objects)
}
