package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/idalloc/idalloc/internal/enable"
)

func newRelease(g *global) *cobra.Command {
	c := &changer{global: g}
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
			return c.release(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.bind(cmd)
	return cmd
}

func (c *changer) release(ctx context.Context, args []string, out, errs io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	s, ref, err := c.one(args)
	if err != nil {
		return err
	}
	options := metav1.UpdateOptions{FieldManager: enable.FieldManager, DryRun: c.stores()}
	var plan enable.Plan
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		whole, err := s.GetWhole(ctx, ref)
		if err != nil {
			return err
		}
		if plan, err = enable.Release(ref, whole); err != nil || len(plan.Objects) == 0 || c.dryRun == "client" {
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
	if err := say(errs, plan.Notes); err != nil {
		return err
	}
	return c.print(out, "released", plan.Objects)
}
