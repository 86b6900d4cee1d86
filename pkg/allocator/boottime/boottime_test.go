package boottime

import (
	"testing"
	"time"
)

func TestWaitEndsNotBeforeItsTime(t *testing.T) {
	for name, waitFor := range map[string]func(time.Duration, <-chan struct{}){"timer": Wait, "tick": wait, "machine": Of(nil).BootWait} {
		t.Run(name, func(t *testing.T) {
			until := Now() + 20*time.Millisecond
			waitFor(until, nil)
			if now := Now(); now < until {
				t.Errorf("it ended %s early", until-now)
			}
			waitFor(Now()-time.Hour, nil) // long over
			waitFor(-time.Hour, nil)      // before the machine was booted
		})
	}
}

func TestWaitEndsWhenTold(t *testing.T) {
	for name, waitFor := range map[string]func(time.Duration, <-chan struct{}){"timer": Wait, "tick": wait, "machine": Of(nil).BootWait} {
		t.Run(name, func(*testing.T) {
			done := make(chan struct{})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				waitFor(Now()+time.Hour, done)
			}()
			close(done)
			<-ended
		})
	}
}

// still is a clock that stands still.
type still struct{ Source }

func TestAClockThatCountsSuspendedTimeIsUsed(t *testing.T) {
	if clock := (still{}); Of(clock) != Source(clock) {
		t.Errorf("in place of the clock %v is used", Of(clock))
	}
	before := Now()
	if got := Of("a clock of another kind").BootTime(); got < before || got > Now() {
		t.Errorf("the machine's clock says %s, and said %s before", got, before)
	}
}
