//go:build !linux

package boottime

import "time"

var start = time.Now() //nolint:gochecknoglobals // where the clock begins

// Now returns the time since this process was started.
func Now() time.Duration { return time.Since(start) }

// Boot is empty: Now means nothing to another process.
func Boot() string { return "" }

// Wait blocks until the clock shows at least until, or done is closed.
func Wait(until time.Duration, done <-chan struct{}) { wait(until, done) }
