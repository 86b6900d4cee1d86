package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// fenceFlags are the flags of strict mode.
type fenceFlags struct {
	after time.Duration
	exec  string
}

func (f *fenceFlags) bind(flags *pflag.FlagSet) {
	flags.DurationVar(&f.after, "fence-after", 0, "strict mode: stop the work after this long without contact")
	flags.StringVar(&f.exec, "fence-exec", "", "strict mode: command that stops the work at once")
}

// check returns the command of --fence-exec, or nil if strict mode is off. The error is a usage error.
func (f *fenceFlags) check() (*hook.Command, error) {
	switch {
	case f.after == 0 && f.exec == "":
		return nil, nil //nolint:nilnil // strict mode is off
	case f.after == 0:
		return nil, cli.Usagef("--fence-exec works only with --fence-after: set both")
	case f.after < allocator.MinFenceAfter || f.after > assignment.MaxFenceAfter:
		return nil, cli.Usagef("--fence-after %s: use %s to %s, or 0 to turn strict mode off", f.after, allocator.MinFenceAfter, assignment.MaxFenceAfter)
	case f.exec == "":
		// Error: exit code 2: `--fence-after` needs a way to stop the work.
		// Do: also set `--fence-exec`.
		return nil, cli.Usagef("--fence-after: strict mode has to stop the work, which watch by itself cannot: name a command that stops it with --fence-exec, or use idalloc run, or a program that links idalloc")
	}
	return parseHook("--fence-exec", f.exec)
}
