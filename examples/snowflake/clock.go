package main

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// passed returns when the clock has passed each time that an earlier holder of the id can have put into what it made. tick is the unit
// of these times. If ctx ends before that, it returns the error of ctx.
//
// idalloc gives the id after the earlier holder has stopped, so what it made is at most skew ahead of this clock.
func passed(ctx context.Context, c clock.Clock, skew, tick time.Duration) error {
	// The whole tick of the last time is taken.
	first := c.Now().Add(skew).Truncate(tick).Add(tick)
	for {
		left := first.Sub(c.Now())
		if left <= 0 {
			return nil
		}
		timer := c.NewTimer(left)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}
