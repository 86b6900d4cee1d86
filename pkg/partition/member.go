package partition

import (
	"context"
	"errors"
	"sync"

	"github.com/idalloc/idalloc/pkg/allocator"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
)

// errWithTheID is for partitions whose work cannot be stopped alone.
var errWithTheID = errors.New("idalloc: partitions move only together with the id, because Options.Stop is not set")

// Member takes part in the division of the partitions. Start makes one. Its methods are safe for concurrent use.
type Member struct {
	instance *idcontext.Instance
	options  Options

	mu sync.Mutex
	// now was published last.
	now identity.Identity
	// worked are the partitions that were owned, and whose work was not known to have stopped since.
	worked  Set
	changes chan struct{}
}

// Start claims an id for this pod and takes part in the background, until Close. It blocks and fails as idcontext.Start does.
func Start(ctx context.Context, o Options) (*Member, error) {
	m := &Member{options: o, changes: make(chan struct{}, 1)}
	o.Partitions = &idcontext.Partitions{
		Publish: m.publish, Stop: m.stop, HandsOver: o.Stop != nil || o.Stopped != nil, Keeps: o.Stop == nil, Strategies: o.Strategies,
	}
	instance, err := idcontext.Start(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	m.instance = instance
	return m, nil
}

func (m *Member) publish(now identity.Identity) {
	m.mu.Lock()
	m.now, m.worked = now, m.worked.Union(now.Partitions.Owned())
	m.mu.Unlock()
	select {
	case m.changes <- struct{}{}:
	default:
	}
}

// stop has the program stop its work.
func (m *Member) stop(ctx context.Context, stop allocator.Stop) error {
	set := stop.Partitions
	if stop.All {
		set = m.all()
	}
	if err := m.tell(ctx, stop.All, set); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.worked = m.worked.Minus(set.Minus(m.now.Partitions.Owned())) // the stop may have been called off, and work goes on
	return nil
}

// tell has the program stop its work on the set, which is all that it works on or a part of it.
func (m *Member) tell(ctx context.Context, all bool, set Set) error {
	switch o := m.options; {
	case all && o.Stopped != nil:
		return o.Stopped(ctx)
	case o.Stop != nil:
		return o.Stop(ctx, set)
	case o.Stopped != nil:
		return errWithTheID
	}
	return nil // nobody can know
}

// all returns the partitions on which the program may be working.
func (m *Member) all() Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.worked
}

// Owned returns the partitions on which the program may work at this moment, in ascending order, without blocking. In strict mode it
// compares the deadline with the clock, so a process that was suspended for too long gets none.
func (m *Member) Owned() []Partition { return owned(m.instance.Current()) }

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
