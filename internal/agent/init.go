package agent

import (
	"context"
	"fmt"

	"github.com/idalloc/idalloc/pkg/identity"
)

// noWork is the work of Init: none, because Init returns before the program starts.
type noWork struct{}

func (noWork) before(identity.Identity) error { return nil }
func (noWork) after(identity.Identity)        {}

// Init claims an id, publishes it in Options.Dir and returns it. The pod keeps its slot after that. Init blocks until there is an id, ctx ends, or
// Options.Timeout passes. At the timeout the error wraps ErrTimeout, and also allocator.ErrNoSlot if the API server has answered.
func Init(ctx context.Context, o Options) (identity.Identity, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var failed error
	a, err := newAgent(o, func(err error) {
		failed = err
		cancel(err)
	})
	if err != nil {
		return identity.Identity{}, err
	}
	defer a.close()
	a.work = noWork{}
	if o.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("%w (%s)", ErrTimeout, o.Timeout))
		defer stop()
	}
	alloc, err := a.newAllocator(ctx)
	if err != nil {
		return identity.Identity{}, err
	}
	id, err := alloc.Claim(ctx)
	if failed != nil {
		return identity.Identity{}, failed
	}
	return id, err
}
