//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/child"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
)

// runner is "idalloc run".
type runner struct {
	inPod
	httpAddress string
	restartOn   []string
	stopTimeout time.Duration
	fenceAfter  time.Duration
	moveDelay   time.Duration
}

func newRun(g *global) *cobra.Command {
	r := &runner{inPod: inPod{global: g}}
	cmd := &cobra.Command{
		Use:         "run [flags] -- COMMAND [ARGUMENT...]",
		Annotations: marked(),
		Short:       "Run a command under this pod's id, and restart it when the id or the count changes",
		Long: `Claims a slot for this pod and starts the command. In its arguments {id}, {count}, {epoch}, {pod}
and {namespace} are replaced by their values; {{id}} stands for {id} itself, and so on, and other
braces stay as they are. IDALLOC_ID, IDALLOC_COUNT and IDALLOC_EPOCH are in its environment.

When the id or, see --restart-on, the count changes, the command gets SIGTERM, and SIGKILL after
--stop-timeout. It is started again when nothing that it had started is left and there is an id.
The slot goes to another pod only after that, so rolling updates hand ids over by themselves.
With --dir, it also stays for --move-delay after the id left the files, for those who read them.

Signals are passed on to the command. SIGTERM and SIGINT also end idalloc, when the command has
ended, or is killed after --stop-timeout; give the pod a terminationGracePeriodSeconds that is 10 s
longer. A shell as the command should exec the program, or SIGTERM stays with the shell.

idalloc ends when the command ends: it gives the slot back and exits with the command's code, 128+n
when signal n ended it. 126: the command cannot be executed; 127: it was not found. 1 to 4 may also
be idalloc's own, with a sentence on standard error that begins with "error:".`,
		Example: `  idalloc run -- kube-state-metrics --shard={id} --total-shards={count}
  idalloc run --restart-on=id -- sh -c 'exec worker --queue "jobs-$IDALLOC_ID"'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New(`name a command: idalloc run -- COMMAND [ARGUMENT...]`)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args) },
	}
	r.bind(cmd)
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows the command is the command's, also without "--"
	dir := f.Lookup("dir")
	r.dir, dir.DefValue, dir.Usage = "", "", "directory to publish id, count, epoch, state, env and identity.json in, for other containers; empty: none"
	f.StringVar(&r.httpAddress, "http-address", ":8089", "address of GET /v1/identity, /readyz and /healthz; empty: off")
	f.StringSliceVar(&r.restartOn, "restart-on", []string{"id", "count"}, "what the command is restarted for when it changes: id,count, or id alone for a command that does not use the count")
	f.DurationVar(&r.stopTimeout, "stop-timeout", 10*time.Second, "time between SIGTERM and SIGKILL when the command is to end")
	f.DurationVar(&r.moveDelay, "move-delay", time.Second, "with --dir: the least time between withdrawing an id from the files and giving its slot away; longer than other containers that read them take to notice and to stop")
	f.DurationVar(&r.fenceAfter, "fence-after", 0, "strict mode: without contact to the API server for this long the command is killed and the id given up; 0 is off")
	return cmd
}

// check returns a usage error.
func (r *runner) check() error {
	for _, what := range r.restartOn {
		if what != "id" && what != "count" {
			return usageError{fmt.Errorf("--restart-on %q: use id,count or id", strings.Join(r.restartOn, ","))}
		}
	}
	switch {
	case !slices.Contains(r.restartOn, "id"):
		return usageError{errors.New("--restart-on: id cannot be left out, because an id that changed is another pod's: use id,count or id")}
	case r.moveDelay < 0:
		return usageError{fmt.Errorf("--move-delay %s: use 0 or more", r.moveDelay)}
	case r.stopTimeout < 0:
		return usageError{fmt.Errorf("--stop-timeout %s: use 0 or more", r.stopTimeout)}
	case r.fenceAfter != 0 && (r.fenceAfter < allocator.MinFenceAfter || r.fenceAfter > assignment.MaxFenceAfter):
		return usageError{fmt.Errorf("--fence-after %s: use %s to %s, or 0 to turn strict mode off", r.fenceAfter, allocator.MinFenceAfter, assignment.MaxFenceAfter)}
	}
	return r.checkTimeout(r.fenceAfter)
}

// statusError ends the program with an exit code of its own. err is nil if there is nothing to say.
type statusError struct {
	code int
	err  error
}

// Error is empty if there is nothing to say.
func (e statusError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns what there is to say.
func (e statusError) Unwrap() error { return e.err }

// ended makes an error of how the command ended.
func ended(code int, err error) error {
	var failed *child.StartError
	switch {
	case errors.As(err, &failed):
		return statusError{code: failed.Code, err: err}
	case err == nil && code != exitDone:
		return statusError{code: code}
	}
	return err
}

func (r *runner) run(ctx context.Context, command []string) error {
	lean()
	if err := r.check(); err != nil {
		return err
	}
	if !slices.Equal(command[:1], child.Fill(command[:1], identity.Pending("", ""))) {
		return usageError{fmt.Errorf("%q: the id goes into the arguments, the command itself is always the same", command[0])}
	}
	if _, err := child.Look(command[0]); err != nil {
		return ended(0, err) // before a slot is claimed in vain
	}
	o, err := r.options(false)
	if err != nil {
		return err
	}
	processes, err := child.NewRunner()
	if err != nil {
		return err
	}
	defer processes.Close()
	o.HTTPAddress, o.MoveDelay, o.FenceAfter = r.httpAddress, r.moveDelay, r.fenceAfter
	return ended(agent.Run(ctx, o, agent.Command{
		Processes: processes, Line: command, KeepOnCountChange: len(r.restartOn) == 1, StopTimeout: r.stopTimeout,
	}))
}
