package boottime

import "time"

// Source is a clock that continues while its process is suspended. A simulator gives each of its machines a clock.Clock that
// also implements Source.
type Source interface {
	// BootTime returns the time since the machine was booted, including the time that it was suspended.
	BootTime() time.Duration
	// BootWait blocks until the clock shows at least until, or done is closed.
	BootWait(until time.Duration, done <-chan struct{})
}

// Of returns clk if it is a Source, and this machine's clock otherwise.
func Of(clk any) Source {
	if s, ok := clk.(Source); ok {
		return s
	}
	return machine{}
}

// machine is the clock of this machine.
type machine struct{}

// BootTime implements Source.
func (machine) BootTime() time.Duration { return Now() }

// BootWait implements Source.
func (machine) BootWait(until time.Duration, done <-chan struct{}) { Wait(until, done) }

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
