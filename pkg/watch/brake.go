package watch

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/pace"
)

// brake delays the next watch of a stream more and more if watches end soon, for any reason. The reflector waits after failed requests, but only after few
// failures of streams: after an event that reports an expired version, or after any other event followed by an end, it asks again at once. Behind a proxy
// that breaks streams a pod would send thousands of requests a second.
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

// asked records whether a watch has begun.
func (b *brake) asked(err error) {
	if b.began = b.now(); err != nil {
		b.began = time.Time{}
	}
}
