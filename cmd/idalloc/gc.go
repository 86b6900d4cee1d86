package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/gc"
)

func newGC(g *global) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "gc KIND/NAME [-n NAMESPACE] [--dry-run]",
		Short: "Free the slots of an owner's dead holders, and say why for each",
		Long: `Frees the slots of dead holders. A holder is dead when its pod is gone, Succeeded or Failed. A Terminating
pod is alive. Waiting pods free such slots by themselves. Use gc to see which there are (--dry-run), or when no pod
is left to free them.`,
		Example: "  idalloc gc deployment/worker -n prod --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.gc(cmd, args, dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what gc would free, and change nothing")
	return cmd
}

func (g *global) gc(cmd *cobra.Command, args []string, dryRun bool) error {
	if _, err := g.logger(); err != nil {
		return err
	}
	s, ref, err := g.connectTo(args)
	if err != nil {
		return err
	}
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 1, Cap: 5 * time.Second, Steps: 20}
	result, err := gc.Sweep(cmd.Context(), s, ref, backoff, dryRun)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	done := "freed"
	if dryRun {
		done = "would free"
	}
	for _, v := range result.Victims {
		if _, err := fmt.Fprintf(out, "%s slot %d of %s: %s: %s\n", done, v.ID, v.Pod, ref, v.Reason); err != nil {
			return err
		}
	}
	if result.Restored {
		note := "restored the assignment, which somebody else had changed, from the pods' receipts"
		if dryRun {
			note = "the assignment was changed by somebody else; would restore it from the pods' receipts"
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", ref, note); err != nil {
			return err
		}
	}
	if len(result.Victims) == 0 && !result.Restored {
		_, err = fmt.Fprintf(out, "%s: no dead holders\n", ref)
	}
	return err
}
