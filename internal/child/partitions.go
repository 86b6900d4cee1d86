//go:build unix

package child

import (
	"context"
	"syscall"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// OnPartitions configures what happens to the command when its partitions change. While there are no partitions, no command runs, with any value.
type OnPartitions int

const (
	// IgnorePartitions is for a process that does not work on partitions.
	IgnorePartitions OnPartitions = iota
	// RestartOnPartitions stops the command and starts it with the new set.
	RestartOnPartitions
	// SignalOnPartitions sends SIGHUP when partitions are added. When some are removed, it restarts the command with the rest, because only the end of the
	// command proves that its work has stopped.
	SignalOnPartitions
)

// Restrict removes all partitions but the given ones. Call it before anything shows that they are gone, and call Publish when everything does. No command
// starts in between. It does not block: StoppedWorkOn waits for the command's end.
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

// StoppedWorkOn blocks until no running command can work on any of the partitions. If ctx ends earlier, it returns the cause of ctx. Call it when the
// partitions are no longer published.
func (f *Follower) StoppedWorkOn(ctx context.Context, set placement.Set) error {
	for {
		f.mu.Lock()
		works, noCommand := f.works, f.noCommand
		f.mu.Unlock()
		if works.Intersect(set).Empty() {
			return nil
		}
		select {
		case <-noCommand: // another command, with other partitions, may already run
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// idle reports whether a command would have no work. The caller must hold the lock.
func (f *Follower) idle() bool {
	return f.o.OnPartitions != IgnorePartitions && f.want.Partitions.Owned().Empty()
}

// hangUp tells the command that partitions were added, unless it is about to stop anyway. A command that is just starting may have read the files already and
// has no signal handler yet, so it is restarted. The caller must hold the lock.
func (f *Follower) hangUp() {
	switch {
	case f.askedToEnd, f.begun != f.revoked:
	case f.process == nil:
		f.revoked++
	default:
		f.process.Signal(syscall.SIGHUP)
	}
}

// keeps reports whether now has all partitions of before, with the same tokens. If a token differs, the partition was gone in between.
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
