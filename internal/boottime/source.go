package boottime

import "time"

// Source is a clock that goes on while its process is suspended. A clock.Clock that is a Source too stands
// for a whole machine: a simulator gives each of its machines one.
type Source interface {
	// BootTime returns the time since the machine was booted, suspend included.
	BootTime() time.Duration
	// BootWait blocks until the clock shows at least until, or done is closed.
	BootWait(until time.Duration, done <-chan struct{})
}

// Of returns clk if it is a Source, else this machine's clock.
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
