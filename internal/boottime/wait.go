package boottime

import "time"

// tick is how often wait looks at the clock: its timer stands still in suspend.
const tick = time.Second

func wait(until time.Duration, done <-chan struct{}) {
	for left := until - Now(); left > 0; left = until - Now() {
		timer := time.NewTimer(min(left, tick))
		select {
		case <-timer.C:
		case <-done:
			timer.Stop()
			return
		}
	}
}
