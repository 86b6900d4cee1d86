package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Program holds what differs between the programs with these commands.
type Program struct {
	// Name is the command as people type it: kubectl idalloc, for example.
	Name string
	// Connect returns a Store, and the namespace from the flags or the kubeconfig.
	Connect func() (*store.Store, string, error)
	// Log returns the logger. Errors are a cli.UsageError about flags.
	Log func() (logr.Logger, error)
	// Formats are the values of -o.
	Formats Formats
	// List prints the workloads for get without the name of one. It is nil in a program whose get shows only a named workload.
	List func(ctx context.Context, named Targets, out *Output, to, errs io.Writer) error
}

// Targets holds what the arguments of a command name: workloads or kinds. If both are empty, all kinds are meant. The workloads have no namespace yet.
type Targets struct {
	Refs  []kinds.Ref
	Kinds []string
}

// ParseTargets reads arguments as kubectl does: KIND/NAME..., KIND[,KIND] or KIND NAME.... The error is a cli.UsageError.
func ParseTargets(args []string) (t Targets, err error) {
	if len(args) == 0 {
		return t, nil
	}
	if _, err := kinds.ParseRef(args[0]+"/any", ""); err != nil && len(args) == 1 && !strings.ContainsAny(args[0], "/,") {
		return t, cli.Usagef("%s is not KIND/NAME: write for example deployment/%s", args[0], args[0])
	}
	if !strings.Contains(args[0], "/") {
		for word := range strings.SplitSeq(args[0], ",") {
			of, err := kinds.ParseRef(word+"/any", "")
			if err != nil {
				return t, cli.Usage(err)
			}
			t.Kinds = append(t.Kinds, of.Kind)
		}
		if len(args) > 1 && len(t.Kinds) > 1 {
			return t, cli.Usagef("%q are several kinds: name the workloads as KIND/NAME", args[0])
		}
		args = slices.Clone(args[1:])
		for k := range args {
			args[k] = t.Kinds[0] + "/" + args[k]
		}
	}
	for _, arg := range args {
		ref, err := kinds.ParseRef(arg, "")
		if err != nil {
			return t, cli.Usage(err)
		}
		t.Refs = append(t.Refs, ref)
	}
	return t, nil
}

// One reads arguments that name one workload. The error is a cli.UsageError.
func One(args []string) (kinds.Ref, error) {
	t, err := ParseTargets(args)
	if err == nil && len(t.Refs) != 1 {
		err = cli.Usagef("name one workload: KIND/NAME, for example deployment/worker")
	}
	if err != nil {
		return kinds.Ref{}, err
	}
	return t.Refs[0], nil
}

// connect returns a Store, and the one workload that args name. Its kind may also be one of further.
func (p Program) connect(ctx context.Context, args []string, further ...string) (*store.Store, kinds.Ref, error) {
	ref, wrong := One(args)
	if wrong != nil && (len(args) != 1 || len(further) == 0) {
		return nil, ref, wrong
	}
	s, namespace, err := p.Connect()
	if ref.Namespace = namespace; err != nil || wrong == nil {
		return s, ref, err
	}
	all, err := s.Further(ctx, further...)
	if err != nil {
		return s, ref, err
	}
	ref, ok := all.Parse(args[0], namespace)
	if !ok {
		return s, ref, wrong
	}
	return s, ref, nil
}

// command completes a command: it checks the flags for output and log before it calls run.
func (p Program) command(cmd *cobra.Command, run func(cmd *cobra.Command, args []string, out *Output, log logr.Logger) error) *cobra.Command {
	out := NewOutput(cmd, p.Formats)
	cmd.Example = "  " + p.Name + " " + cmd.Example
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		log, err := p.Log()
		if err != nil {
			return err
		}
		if err := out.Check(); err != nil {
			return err
		}
		err = run(cmd, args, out, log)
		if errors.Is(err, request.ErrGone) {
			err = fmt.Errorf("%w: check the kind, the name and the namespace (-n)", err)
		}
		return err
	}
	return cmd
}
