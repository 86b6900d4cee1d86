package commands

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/gc"
)

// NewGC returns the command gc.
func NewGC(p Program) *cobra.Command {
	var dryRun bool
	cmd := p.command(&cobra.Command{
		Use:   "gc KIND/NAME [--dry-run]",
		Short: "Free the slots of dead holders, and say why for each",
		Long: `Frees the slots of dead holders. A holder is dead when its pod is gone,
Succeeded or Failed; a Terminating pod is alive. Waiting pods free such slots by
themselves. gc shows which there are (--dry-run), and frees them when no pod is
left to do so. It also deletes Leases of slots that the workload does not have.`,
		Example: "gc deployment/worker -n prod --dry-run",
	}, func(cmd *cobra.Command, args []string, out *Output, _ logr.Logger) error {
		s, ref, err := p.connect(cmd.Context(), args)
		if err != nil {
			return err
		}
		backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 1, Cap: 5 * time.Second, Steps: 20}
		result, err := gc.Sweep(cmd.Context(), s, ref, backoff, dryRun)
		if err != nil {
			return err
		}
		swept := sweepOf(ref, result, dryRun)
		if out.ForPeople() {
			return swept.text(cmd.OutOrStdout())
		}
		return out.Items(cmd.OutOrStdout(), false, Item{ref, "Sweep", swept})
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what gc would free, and change nothing")
	return cmd
}

// sweep is the result of gc, for printing.
type sweep struct {
	Owner     string   `json:"owner"`
	Namespace string   `json:"namespace"`
	DryRun    bool     `json:"dryRun,omitempty"`
	Freed     []victim `json:"freed"`
	Restored  bool     `json:"restored"`
	// Leases are the slots above the count whose Leases gc deletes.
	Leases []int `json:"leases,omitempty"`
}

type victim struct {
	ID     int    `json:"id"`
	Pod    string `json:"pod"`
	Reason string `json:"reason"`
}

func sweepOf(ref kinds.Ref, result gc.Result, dryRun bool) sweep {
	s := sweep{Owner: ref.String(), Namespace: ref.Namespace, DryRun: dryRun, Freed: []victim{}, Restored: result.Restored, Leases: result.Leases}
	for _, v := range result.Victims {
		s.Freed = append(s.Freed, victim{v.ID, v.Pod, v.Reason})
	}
	return s
}

func (s sweep) text(w io.Writer) error {
	done, deleted, restored := "freed", "deleted", "restored the assignment, which another client had changed, from the pods' receipts"
	if s.DryRun {
		done, deleted, restored = "would free", "would delete", "the assignment was changed by another client; would restore it from the pods' receipts"
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
	for _, id := range s.Leases {
		say("%s: %s the Lease of slot %d, which it does not have\n", s.Owner, deleted, id)
	}
	if len(s.Freed) == 0 && !s.Restored && len(s.Leases) == 0 {
		say("%s: no dead holders\n", s.Owner)
	}
	return errors.Join(errs...)
}
