package context

import "context"

// StartRun is the beginning of Run: the instance's loop runs, and no function has been called yet.
func StartRun(ctx context.Context, o Options) (*Instance, error) {
	return start(ctx, o, (*Instance).stopped)
}
