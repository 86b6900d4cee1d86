package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/inspect"
)

type verifier struct {
	*global
	output   string
	wait     time.Duration
	warnings bool
}

func newVerify(g *global) *cobra.Command {
	v := &verifier{global: g}
	cmd := &cobra.Command{
		Use:   "verify KIND/NAME [-n NAMESPACE] [-o table|json] [--wait=DURATION]",
		Short: "Check an owner against its live pods; exit 1 if something is wrong",
		Long: `Checks that each id is held by exactly one live pod, as the assignment and the pods' receipts say. It
changes nothing. It exits with 1
  - if an id is held twice, or by a dead pod, or by no pod while a live pod waits;
  - if a rolling update is stuck;
  - if partitions are locked twice, are nobody's for too long, or cannot be given out, or if an annotation
    that says how they are to be divided makes no sense or is not in force;
  - if somebody else changed the assignment or a receipt, and no pod has written it again yet.
Each finding says what to do. There are warnings, too: of a rolling update that would wait for ever, for
example, or of a pod that does not renew its Lease (strict mode). They change the exit code only with
--fail-on-warnings. If a workload does not use idalloc at all, verify says only that, as a warning.

Pods that start or end are between two states for a moment. With --wait, verify checks again at every
change until nothing is wrong or the time is over.`,
		Example: "  idalloc verify deployment/worker -n prod --wait=1m",
		RunE:    v.run,
	}
	f := cmd.Flags()
	f.StringVarP(&v.output, "output", "o", "table", "table or json")
	f.DurationVar(&v.wait, "wait", 0, "how long to check again at every change while something is wrong; 0 checks once")
	f.BoolVar(&v.warnings, "fail-on-warnings", false, "exit with 1 for warnings, too; with --wait, also check again while there are warnings")
	return cmd
}

func (v *verifier) run(cmd *cobra.Command, args []string) error {
	log, err := v.logger()
	if err != nil {
		return err
	}
	show, ok := map[string]func(io.Writer, inspect.Report) error{
		"table": func(w io.Writer, r inspect.Report) error { return r.Table(w) },
		"json": func(w io.Writer, r inspect.Report) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(r)
		},
	}[v.output]
	if !ok {
		return usageError{fmt.Errorf("-o %q: use table or json", v.output)}
	}
	if v.wait < 0 {
		return usageError{fmt.Errorf("--wait %s: use 0 or more", v.wait)}
	}
	s, ref, err := v.connectTo(args)
	if err != nil {
		return err
	}
	report, err := inspect.Await(cmd.Context(), s, ref, v.wait, v.warnings, log)
	if err != nil {
		return err
	}
	if err := show(cmd.OutOrStdout(), report); err != nil {
		return err
	}
	if !report.OK {
		return fmt.Errorf("%s in namespace %s: verify found what is wrong, %d in number; see above", ref, ref.Namespace, len(report.Findings))
	}
	if v.warnings && len(report.Warnings) > 0 {
		return fmt.Errorf("%s in namespace %s: verify warns, %d in number, and --fail-on-warnings is set; see above", ref, ref.Namespace, len(report.Warnings))
	}
	return nil
}
