package allocator

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/event"
)

// patience is how long a pod waits for a slot before it says so, and how long until it says so again.
const patience = 30 * time.Second

// wait is what this process waits for.
type wait struct{ what atomic.Pointer[string] }

// waitingFor says what is waited for, empty if nothing. It may be called from any goroutine.
func (w *wait) waitingFor() string {
	if s := w.what.Load(); s != nil {
		return *s
	}
	return ""
}

// setWaiting notes what is waited for.
func (w *wait) setWaiting(what string) { w.what.Store(&what) }

// complain tells again and again that the claim under way takes long, until stop. It does so in a goroutine, which ends with follow.
func (a *Allocator) complain(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	a.running.Go(func() {
		for {
			timer := a.clock.NewTimer(patience)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C():
			}
			if what := a.Waiting(); what != "" {
				a.happened.Tell(event.StillWaiting{Reason: what})
			}
		}
	})
	return cancel
}
