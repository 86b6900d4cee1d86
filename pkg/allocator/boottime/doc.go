// Package boottime is a clock that continues while the machine or this process is suspended.
//
// Go's monotonic clock is CLOCK_MONOTONIC on Linux. It stands still while the machine is suspended, so a deadline that is
// measured with it may be hours late. On systems other than Linux this package uses Go's clock nevertheless.
package boottime
