package watch

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/pace"
)

// brake has the next watch of a stream begin later and later if watches end soon, for whatever reason. The reflector waits after requests that
// fail, and after few of the streams that do: after an event that says that a version has expired, or after any other one and an end, it asks
// again at once. Behind a proxy that breaks streams a pod would send thousands of requests a second.
type brake struct {
	now   func() time.Time
	delay *pace.Backoff
	began time.Time // of the last watch, zero if there was none or it was refused
}

func newBrake(now func() time.Time) *brake {
	return &brake{now: now, delay: pace.New(rand.Float64).Backoff()}
}

// wait blocks until the next watch may begin, or ctx ends.
func (b *brake) wait(ctx context.Context) {
	switch {
	case b.began.IsZero():
		return
	case b.now().Sub(b.began) >= pace.MaxDelay:
		b.delay.Reset()
		return
	}
	timer := time.NewTimer(b.delay.Next())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// asked takes in whether a watch has begun.
func (b *brake) asked(err error) {
	if b.began = b.now(); err != nil {
		b.began = time.Time{}
	}
}
