package agent

import (
	"context"
	"fmt"

	"github.com/idalloc/idalloc/pkg/identity"
)

// idle is work that nobody has begun.
type idle struct{}

func (idle) before(identity.Identity) error { return nil }
func (idle) after(identity.Identity)        {}

// Init claims an id, shows it in Options.Dir, and returns it. The pod keeps its slot. It blocks until then, until ctx ends, or for
// Options.Timeout. The error wraps allocator.ErrNoSlot and ErrTimeout when there was none in time.
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
	a.work = idle{}
	if o.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("%w (%s)", ErrTimeout, o.Timeout))
		defer stop()
	}
	alloc, err := a.newAllocator(ctx)
	if err != nil {
		return identity.Identity{}, noSlotIfLate(err)
	}
	id, err := alloc.Claim(ctx)
	if failed != nil {
		return identity.Identity{}, failed
	}
	return id, noSlotIfLate(err)
}
