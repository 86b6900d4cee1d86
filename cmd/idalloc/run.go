//go:build unix

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/child"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
)

// runner holds the flags of "idalloc run".
type runner struct {
	inPod
	httpAddress string
	restartOn   []string
	stopTimeout time.Duration
	fenceAfter  time.Duration
	moveDelay   time.Duration
	// partitions and onPartitions are the flags with the same names.
	partitions   bool
	onPartitions string
}

// Values of --on-partitions.
const (
	onPartitionsRestart = "restart"
	onPartitionsSignal  = "signal"
)

func newRun(g *global) *cobra.Command {
	r := &runner{inPod: inPod{global: g}}
	cmd := &cobra.Command{
		Use:         "run [flags] -- COMMAND [ARGUMENT...]",
		Annotations: marked(),
		Short:       "Run a command under this pod's id, and restart it for changes",
		Long: `Claims a slot for this pod and starts the command. It replaces {id}, {count},
{token}, {pod} and {namespace} in the arguments by their values; {{id}} stands
for {id} itself. IDALLOC_ID, IDALLOC_COUNT and IDALLOC_TOKEN are in the
command's environment.

When the id or the count changes (--restart-on), the command gets SIGTERM, and
SIGKILL after --stop-timeout. idalloc starts it again when all that it had
started is gone. A slot goes to another pod only then, so rolling updates hand
ids over by themselves. With --dir, a slot also stays for --move-delay after its
id left the files, so that other containers can stop.

idalloc passes signals on to the command. SIGTERM and SIGINT also end idalloc,
once the command has ended. Make terminationGracePeriodSeconds 10 s longer than
--stop-timeout. If the command is a shell, let it exec the program.

With --partitions, --on-partitions or {partitions} in the arguments, the command
works on the partitions in {partitions} and IDALLOC_PARTITIONS, such as 0-15,40.
It does not run while there are none, and starts again when they change. With
--on-partitions=signal it gets SIGHUP when there are more, and reads them from
--dir or over HTTP; it must handle the signal from the start on.

When the command ends, idalloc gives the slot back and exits with the command's
code, with 128+n after signal n, with 126 if the command cannot be executed, or
with 127 if there is none. Codes 1 to 4 may be idalloc's own; then a sentence on
standard error begins with "error:".`,
		Example: `  idalloc run -- kube-state-metrics --shard={id} --total-shards={count}
  idalloc run -- consumer --queues={partitions}
  idalloc run --restart-on=id -- sh -c 'exec worker --queue "jobs-$IDALLOC_ID"'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				// Error: exit code 2: `run` needs a command after `--`.
				return cli.Usagef(`name a command: idalloc run -- COMMAND [ARGUMENT...]`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args) },
	}
	r.bind(cmd)
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after the command belong to the command, even without "--"
	dir := f.Lookup("dir")
	r.dir, dir.DefValue, dir.Usage = "", "", "directory for the files id, count, token and others; empty: none"
	f.StringVar(&r.httpAddress, "http-address", ":8089", "address of the HTTP server; empty: none")
	f.StringSliceVar(&r.restartOn, "restart-on", []string{"id", "count"}, "changes that restart the command: id,count or id")
	bindPartitions(f, &r.partitions)
	f.StringVar(&r.onPartitions, "on-partitions", "", "when partitions change: restart, or signal (SIGHUP for more)")
	f.DurationVar(&r.stopTimeout, "stop-timeout", 10*time.Second, "time between SIGTERM and SIGKILL when idalloc stops the command")
	f.DurationVar(&r.moveDelay, "move-delay", time.Second, "with --dir: time that readers of the files have to stop")
	f.DurationVar(&r.fenceAfter, "fence-after", 0, "strict mode: kill the command after this long without contact")
	return cmd
}

// check returns a usage error if a flag is invalid.
func (r *runner) check() error {
	for _, what := range r.restartOn {
		if what != "id" && what != "count" {
			return cli.Usagef("--restart-on %q: use id,count or id", strings.Join(r.restartOn, ","))
		}
	}
	switch r.onPartitions {
	case "", onPartitionsRestart, onPartitionsSignal:
	default:
		return cli.Usagef("--on-partitions %q: use restart or signal", r.onPartitions)
	}
	switch {
	case !slices.Contains(r.restartOn, "id"):
		// Error: exit code 2: `--restart-on` lacks `id`.
		// Do: use `id,count` or `id`.
		return cli.Usagef("--restart-on: id cannot be left out, because the old id may be another pod's: use id,count or id")
	case r.moveDelay < 0:
		return cli.Usagef("--move-delay %s: use 0 or more", r.moveDelay)
	case r.stopTimeout < 0:
		return cli.Usagef("--stop-timeout %s: use 0 or more", r.stopTimeout)
	case r.fenceAfter != 0 && (r.fenceAfter < allocator.MinFenceAfter || r.fenceAfter > assignment.MaxFenceAfter):
		return cli.Usagef("--fence-after %s: use %s to %s, or 0 to turn strict mode off", r.fenceAfter, allocator.MinFenceAfter, assignment.MaxFenceAfter)
	}
	return nil
}

// ended returns the error that matches how the command ended.
func ended(code int, err error) error {
	var failed *child.StartError
	switch {
	case errors.As(err, &failed):
		return statusError{code: failed.Code, err: err}
	case err == nil && code != cli.ExitDone:
		return statusError{code: code}
	}
	return err
}

func (r *runner) run(ctx context.Context, command []string) error {
	lean()
	if err := r.check(); err != nil {
		return err
	}
	if !slices.Equal(command[:1], child.Fill(command[:1], identity.Pending("", ""))) || child.NamesPartitions(command[:1]) {
		// Error: exit code 2, of `run`: the command's name must not contain a placeholder.
		return cli.Usagef("%q: the id goes into the arguments; the command itself is always the same", command[0])
	}
	if _, err := child.Find(command[0]); err != nil {
		return ended(0, err) // without the program, a slot is of no use
	}
	o, err := r.options(false, r.fenceAfter)
	if err != nil {
		return err
	}
	processes, err := child.NewRunner()
	if err != nil {
		return err
	}
	defer processes.Close()
	o.HTTPAddress, o.MoveDelay = r.httpAddress, r.moveDelay
	o.Partitions = r.partitions || r.onPartitions != "" || child.NamesPartitions(command)
	onPartitions := child.RestartOnPartitions
	if r.onPartitions == onPartitionsSignal {
		onPartitions = child.SignalOnPartitions
	}
	return ended(agent.Run(ctx, o, agent.Command{
		Processes: processes, Line: command, KeepOnCountChange: len(r.restartOn) == 1, OnPartitions: onPartitions, StopTimeout: r.stopTimeout,
	}))
}
