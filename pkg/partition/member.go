package partition

import (
	"context"
	"sync"

	"github.com/idalloc/idalloc/pkg/allocator"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Member takes part in the division of the partitions. Start makes one. Its methods are safe for concurrent use.
type Member struct {
	instance *idcontext.Instance

	mu     sync.Mutex
	shares allocator.Shares
	// worked are the partitions that were owned, and whose work was not known to have stopped since.
	worked  Set
	changes chan struct{}
}

// Start claims an id for this pod and takes part in the background, until Close. It blocks and fails as idcontext.Start does.
func Start(ctx context.Context, o Options) (*Member, error) {
	m := &Member{changes: make(chan struct{}, 1)}
	stop := o.Stop
	if stop == nil {
		stop = func(context.Context, Set) error { return nil } // what is lost is lost
	} else if o.Stopped == nil {
		o.Stopped = func(ctx context.Context) error { return m.stop(ctx, o.Stop, m.all()) }
	}
	o.Partitions = &allocator.Partitions{
		Publish: m.publish, Strategies: o.Strategies, Keeps: o.Stop == nil,
		Stop: func(ctx context.Context, s allocator.PartitionStop) error { return m.stop(ctx, stop, s.Set) },
	}
	instance, err := idcontext.Start(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	m.instance = instance
	return m, nil
}

func (m *Member) publish(now allocator.Shares) {
	m.mu.Lock()
	m.shares = now
	for _, share := range now.Owned {
		m.worked = m.worked.Union(share.Set)
	}
	m.mu.Unlock()
	select {
	case m.changes <- struct{}{}:
	default:
	}
}

// stop has the program stop its work on the set.
func (m *Member) stop(ctx context.Context, stop func(context.Context, Set) error, set Set) error {
	if err := stop(ctx, set); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, share := range m.shares.Owned { // the stop may have been called off, and work goes on
		set = set.Minus(share.Set.Minus(m.shares.Stopping))
	}
	m.worked = m.worked.Minus(set)
	return nil
}

// all returns the partitions on which the program may be working.
func (m *Member) all() Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.worked
}

// Owned returns the partitions on which the program may work at this moment, in ascending order, without blocking. In strict mode it
// compares the deadline with the clock, so a process that was suspended for too long gets none.
func (m *Member) Owned() []Partition {
	id := m.instance.Current()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !id.Assigned() || id.ID != m.shares.Identity.ID || id.Epoch != m.shares.Identity.Epoch {
		return nil
	}
	return owned(m.shares)
}

// Changes returns a channel that gets a value after Owned has changed. Changes that nobody received before the next one are received
// as one. All callers share the channel. It is not closed.
func (m *Member) Changes() <-chan struct{} { return m.changes }

// Identity returns the identity at this moment, as Instance.Current does.
func (m *Member) Identity() identity.Identity { return m.instance.Current() }

// Healthy returns an error if the loop is stuck or has ended, as Instance.Healthy does.
func (m *Member) Healthy() error { return m.instance.Healthy() }

// Wait blocks until an id is assigned, as Instance.Wait does. It does not wait for partitions, because there may be more pods than
// partitions.
func (m *Member) Wait(ctx context.Context) (identity.Identity, error) { return m.instance.Wait(ctx) }

// Close ends the membership and releases the slot with its partitions, as Instance.Close does. Call it after the work has stopped.
func (m *Member) Close(ctx context.Context) error { return m.instance.Close(ctx) }
