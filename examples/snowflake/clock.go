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

// start is a moment by both clocks of a machine: the one that people set, and the one that only runs on.
type start struct {
	clock   clock.Clock
	set     time.Time // without the reading of the other clock
	running time.Time
}

func startOf(c clock.Clock) start {
	return start{clock: c, running: time.Now(), set: c.Now().Round(0)}
}

// ahead returns how far the clock that runs on has left the other one behind since then. It is above 0 if that one was set back.
func (s start) ahead() time.Duration {
	ran := time.Since(s.running)
	return max(0, ran-s.clock.Now().Round(0).Sub(s.set))
}
