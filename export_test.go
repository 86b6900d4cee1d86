package idalloc

import (
	"context"

	"github.com/idalloc/idalloc/pkg/identity"
)

// StartRun is the beginning of Run: the instance's loop runs, and no function has been called yet.
func StartRun(ctx context.Context, o Options) (*Instance, error) { return start(ctx, o, inOneCall) }

// StartRunPartitions is the beginning of RunPartitions.
func StartRunPartitions(ctx context.Context, o Options) (*Instance, error) {
	return newRunner(ctx, func(ctx context.Context, _ Partition) error { <-ctx.Done(); return nil }).start(ctx, o)
}

// CallFenced calls fn as Run does. The loop has fenced the instance, and none of those who wait for a change has run since.
func (i *Instance) CallFenced(ctx context.Context, id Identity, fn func(context.Context, Identity) error) {
	i.begin(id)
	_, _ = i.call(ctx, id, func(ctx context.Context, id Identity) error {
		i.mu.Lock()
		i.withdraw(identity.StateFenced)
		i.mu.Unlock()
		return fn(ctx, id)
	})
}
