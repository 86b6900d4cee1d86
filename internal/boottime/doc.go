// Package boottime is a clock that goes on while the machine, or this process, is suspended.
//
// Go's monotonic clock is Linux' CLOCK_MONOTONIC, which stands still in suspend: a deadline that is
// measured with it may be hours late. On other systems than Linux this package falls back to it.
package boottime
