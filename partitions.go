package idalloc

import (
	"context"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Partition is one partition on which this process works.
type Partition struct {
	// Number is in [0, Count).
	Number int
	// Count is the number of partitions of the workload.
	Count int
	// Token is a fencing token. It stays the same while this process works on the partition. Each later pod has a higher one; the next process of the same
	// pod may have the same.
	Token int64
	// Instance is the identity under which the process works on it, without partitions, so that it does not change when others move.
	Instance Identity
}

// RunPartitions calls work for each partition that this pod owns, in goroutines, one call at a time for each partition.
//
// The context of a call ends when its partition must move. context.Cause returns the reason: ErrRevoked, ErrLost, ErrFenced or ErrClosing. The calls for
// other partitions continue, and a change of the number of replicas does not disturb partitions that stay. RunPartitions waits for the call to return,
// without a time limit, because the partition may go to another pod only after that. If a call returns nil before its context has ended, work is called
// again for that partition only after this pod has lost it and has taken it again.
//
// RunPartitions blocks until ctx ends, until a call returns an error of its own, or until there can be no id any more. Then it ends all calls, waits for
// them and releases the slot. It returns the call's error. It returns nil if ctx ended and the calls returned nil or the error or the cause of their
// contexts. If it could not start, or there can be no id any more, it returns the error that Start or Instance.Wait would return.
func RunPartitions(ctx context.Context, o Options, work func(ctx context.Context, p Partition) error) error {
	r := newRunner(ctx, work)
	i, err := r.start(ctx, o)
	if err != nil {
		return ended(ctx, err)
	}
	defer i.release(ctx)
	defer func() { _ = r.close(ctx) }() // if Options.Changed panics, calls still run
	err = follow(ctx, i, r)
	if own := r.close(ctx); own != nil {
		i.Failed()
		return own
	}
	return ended(ctx, err)
}

// start starts the instance that provides the runner's partitions.
func (r *runner) start(ctx context.Context, o Options) (*Instance, error) {
	stop := func(_ *Instance, ctx context.Context, s allocator.Stop) error { return r.stop(ctx, s) }
	i, err := start(ctx, o, manner{divides: true, handsOver: true, inProcess: true, publish: r.publish, stop: stop})
	if err != nil {
		return nil, err
	}
	r.current, r.strict = i.Current, o.FenceAfter > 0
	close(r.known)
	return i, nil
}

// follow waits until ctx ends, a call fails, or there can be no id any more. Meanwhile it ends the calls when the process is fenced, which the allocator
// reports only later, and passes each identity to Options.Changed.
func follow(ctx context.Context, i *Instance, r *runner) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)() //nolint:contextcheck // it ends for a reason of its own, too
	tell := i.options.Changed
	if tell == nil {
		tell = func(Identity) {}
	}
	for {
		now, err := i.Wait(ctx)
		if err != nil {
			return err
		}
		for tell(now); now.Assigned(); tell(now) {
			select {
			case <-ctx.Done():
				return nil
			case <-i.Changes():
			}
			now = i.Current()
		}
		r.withdraw(withdrawn(now.State))
	}
}

// owned returns the partitions on which work may continue, in ascending order.
func owned(id Identity) []Partition {
	var all []Partition
	shares, count := id.Partitions.Shares(), id.Partitions.Count
	id.Partitions = identity.Partitions{}
	for _, share := range shares {
		for k := range share.Set.All() {
			all = append(all, Partition{Number: k, Count: count, Token: share.Token, Instance: id})
		}
	}
	slices.SortFunc(all, func(a, b Partition) int { return a.Number - b.Number })
	return all
}

// withdrawn returns why no work may continue under an identity that is not assigned.
func withdrawn(state identity.State) error {
	switch state {
	case identity.StateFenced:
		return ErrFenced
	case identity.StateDraining:
		return ErrRevoked
	default:
		return ErrLost
	}
}
