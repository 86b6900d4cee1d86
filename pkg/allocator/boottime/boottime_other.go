//go:build !linux

package boottime

import "time"

var start = time.Now() //nolint:gochecknoglobals // the zero of the clock

// Now returns the time since this process was started.
func Now() time.Duration { return time.Since(start) }

// Wait blocks until the clock shows at least until, or done is closed.
func Wait(until time.Duration, done <-chan struct{}) { wait(until, done) }
