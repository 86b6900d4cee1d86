package overlap

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Now returns the host's CLOCK_MONOTONIC in nanoseconds. All containers of a host read the same clock;
// Go's own monotonic time starts with the process and cannot be compared.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("overlap: Linux always has CLOCK_MONOTONIC: %v", err))
	}
	return ts.Nano()
}
