package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
)

// errFenceLead is the cause of the end of a fence hook that took too long.
var errFenceLead = errors.New("a third of --fence-after is over")

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

// lead is the time that the fence hook has.
func (f *fenceFlags) lead() time.Duration { return f.after / 3 }

// fencer stops the work when the id is given up for lack of contact.
type fencer struct {
	log  logr.Logger
	lead time.Duration
	// withdraw takes the id out of the files and answers and returns it; false if there was none.
	withdraw func() (identity.Identity, bool)
	// kill stops the work.
	kill func(ctx context.Context, id identity.Identity) error
	// killed takes in that no work goes on under the id.
	killed func(id identity.Identity) error
}

// fenceRetry is the time between two tries of the fence hook.
const fenceRetry = 200 * time.Millisecond

// fence blocks until the work is stopped, for the lead at most, and does not stop half-way when ctx ends.
func (f *fencer) fence(ctx context.Context) {
	id, told := f.withdraw()
	if !told {
		return // no work goes on under an id that nobody was told of
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), f.lead, errFenceLead)
	defer cancel()
	var err error
	for {
		if err = f.kill(ctx, id); err == nil {
			err = f.killed(id)
			break
		}
		if !sleep(ctx, fenceRetry) {
			break
		}
	}
	if err != nil {
		f.log.Error(err, "the fence hook failed; the work may go on under an id that is given up", "id", id.ID, "epoch", id.Epoch)
	}
}

// sleep returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
