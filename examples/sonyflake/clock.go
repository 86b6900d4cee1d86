package main

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// passed returns when the clock has passed each time that an earlier holder of the id can have put into what it made. tick is the unit
// of these times. If ctx ends before that, it returns the error of ctx.
//
// idalloc gives the id after the earlier holder has stopped, so what it made is at most skew ahead of this clock. The
// epoch adds safety where a clock is wrong by more than skew: it is at least the time by the clock of every pod that has changed the
// assignment, in milliseconds.
func passed(ctx context.Context, c clock.Clock, epoch int64, skew, tick time.Duration) error {
	last := c.Now()
	if given := time.UnixMilli(epoch); given.After(last) {
		last = given
	}
	// The whole tick of the last time is taken.
	first := last.Add(skew).Truncate(tick).Add(tick)
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
