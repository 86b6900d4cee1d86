package boottime

import "time"

// tick is the time between two readings of the clock. wait cannot use one long timer, because Go's timers stand still while the
// machine is suspended.
const tick = time.Second

func wait(until time.Duration, done <-chan struct{}) {
	for left := until - Now(); left > 0; left = until - Now() {
		select {
		case <-time.After(min(left, tick)):
		case <-done:
			return
		}
	}
}
