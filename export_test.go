package idalloc

import "context"

// StartRun is the beginning of Run: the instance's loop runs, and no function has been called yet.
func StartRun(ctx context.Context, o Options) (*Instance, error) { return start(ctx, o, inOneCall) }

// StartRunPartitions is the beginning of RunPartitions.
func StartRunPartitions(ctx context.Context, o Options) (*Instance, error) {
	return newRunner(ctx, func(ctx context.Context, _ Partition) error { <-ctx.Done(); return nil }).start(ctx, o)
}
