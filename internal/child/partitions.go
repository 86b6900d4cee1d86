//go:build unix

package child

import (
	"context"
	"syscall"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// OnPartitions says what a change of the partitions does to the command. While there are none, no command runs, whatever it says.
type OnPartitions int

const (
	// IgnorePartitions is for a process that does not work on partitions.
	IgnorePartitions OnPartitions = iota
	// RestartOnPartitions stops the command, and starts it with the new set.
	RestartOnPartitions
	// SignalOnPartitions sends SIGHUP when there are more partitions. If some are taken away, it stops the command and starts it with
	// the rest, because only the command's end tells that its work has stopped.
	SignalOnPartitions
)

// Restrict takes away all partitions but the given ones. Call it before anything shows that they are gone, and Publish when everything
// does. No command starts in between. It does not block: StoppedWorkOn waits for the command's end.
func (f *Follower) Restrict(to placement.Set) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.o.OnPartitions == IgnorePartitions || f.want.Partitions.Owned().Subset(to) {
		return
	}
	f.revoked++
	f.restricted = true
	f.wake()
}

// StoppedWorkOn blocks until no command runs that may work on any of the partitions. If ctx ends before that, it returns the cause of
// ctx. Call it when they are not published any more.
func (f *Follower) StoppedWorkOn(ctx context.Context, set placement.Set) error {
	for {
		f.mu.Lock()
		works, noCommand := f.works, f.noCommand
		f.mu.Unlock()
		if works.Intersect(set).Empty() {
			return nil
		}
		select {
		case <-noCommand: // another one may run by now, with other partitions
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// idle reports whether there is nothing for a command to do. The caller must hold the lock.
func (f *Follower) idle() bool {
	return f.o.OnPartitions != IgnorePartitions && f.want.Partitions.Owned().Empty()
}

// hangUp tells the command that there are more partitions, unless it is about to stop anyway. A command that is being started may have
// read the files already, and has no handler for the signal yet, so it is started again. The caller must hold the lock.
func (f *Follower) hangUp() {
	switch {
	case f.askedToEnd, f.begun != f.revoked:
	case f.process == nil:
		f.revoked++
	default:
		f.process.Signal(syscall.SIGHUP)
	}
}

// keeps reports whether now has all partitions of before, with the same tokens. A partition with another token was away in between.
func keeps(now, before identity.Partitions) bool {
	same := map[int64]placement.Set{}
	for _, s := range now.Shares() {
		same[s.Token] = s.Set
	}
	for _, s := range before.Shares() {
		if !s.Set.Subset(same[s.Token]) {
			return false
		}
	}
	return true
}
