package allocator_test

import (
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
)

// creeping is the clock of a process that is so slow that seconds pass between two looks at it.
type creeping struct {
	clock.RealClock

	began time.Time
	looks *atomic.Int64
}

func (c creeping) Now() time.Time {
	return c.began.Add(time.Duration(c.looks.Add(1)) * 10 * time.Second)
}

func (c creeping) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c creeping) NewTimer(d time.Duration) clock.Timer {
	return c.RealClock.NewTimer(min(d, time.Millisecond))
}

// What is due when a process goes to rest was still to come when it decided to.
func TestNoAlarmIsMissedBetweenADecisionAndARest(t *testing.T) {
	b := newBench(t, 0)
	b.clk = creeping{began: time.Now(), looks: &atomic.Int64{}}
	b.pod("p0")
	said := make(chan struct{}, 99)
	b.start("p0", func(o *allocator.Options) {
		o.Observer = on(func(_ event.StillWaiting) {
			said <- struct{}{}
		})
	})
	for range 20 {
		<-said
	}
}
