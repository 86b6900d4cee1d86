package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// fenceFlags are strict mode.
type fenceFlags struct {
	after time.Duration
	exec  string
}

func (f *fenceFlags) bind(flags *pflag.FlagSet) {
	flags.DurationVar(&f.after, "fence-after", 0, "strict mode: without contact to the API server for this long the work is stopped and the id given up; 0 is off")
	flags.StringVar(&f.exec, "fence-exec", "", "a command that stops the work at once, needed for --fence-after; it has a third of --fence-after for that, and is read and run like that of --drain-exec")
}

// check returns a usage error, and the command of --fence-exec if there is one.
func (f *fenceFlags) check() (*hook.Command, error) {
	switch {
	case f.after == 0 && f.exec == "":
		return nil, nil //nolint:nilnil // strict mode is off
	case f.after == 0:
		return nil, usageError{errors.New("--fence-exec is of use only with --fence-after: set both")}
	case f.after < allocator.MinFenceAfter || f.after > assignment.MaxFenceAfter:
		return nil, usageError{fmt.Errorf("--fence-after %s: use %s to %s, or 0 to turn strict mode off", f.after, allocator.MinFenceAfter, assignment.MaxFenceAfter)}
	case f.exec == "":
		return nil, usageError{errors.New("--fence-after: strict mode has to stop the work, and watch by itself cannot: give it a command with --fence-exec that does, or use idalloc run, or the linked package pkg/context")}
	}
	return parseHook("--fence-exec", f.exec)
}
