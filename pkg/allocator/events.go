package allocator

import (
	"context"
)

// warn leaves an Event on the owner. It is best effort: an Event that cannot be written is logged.
func (a *Allocator) warn(ctx context.Context, reason, message string) {
	a.log.Info("damage repaired", "reason", reason, "detail", message)
	if err := a.store.Warn(ctx, a.ref, a.o.Pod, reason, message); err != nil {
		a.log.V(1).Info("the event could not be written", "reason", err.Error())
	}
}
