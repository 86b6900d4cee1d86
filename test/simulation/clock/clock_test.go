package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sleeper is a process that the test suspends and wakes.
type sleeper struct {
	mu        sync.Mutex
	suspended bool
	later     []func()
}

func (s *sleeper) Alone(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *sleeper) WhenAwake(do func()) {
	if s.suspended {
		s.later = append(s.later, do)
		return
	}
	do()
}

func (s *sleeper) Thawed() {}

func (s *sleeper) wake() {
	s.Alone(func() {
		s.suspended = false
		for _, do := range s.later {
			do()
		}
	})
}

// fired reports whether a timer has fired by now.
func fired(c <-chan time.Time) bool {
	synctest.Wait()
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestASuspendedProcessHearsOfATimerWhenItGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &sleeper{suspended: true}
		timer := (&Clock{Process: p, Rate: 1}).NewTimer(time.Second)
		<-time.After(time.Minute)
		if fired(timer.C()) {
			t.Error("the timer fired in the suspension")
		}
		if p.wake(); !fired(timer.C()) {
			t.Error("the timer did not fire after the suspension")
		}
	})
}

func TestATimerThatIsStoppedInASuspensionStaysSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &sleeper{suspended: true}
		timer := (&Clock{Process: p, Rate: 1}).NewTimer(time.Second)
		<-time.After(time.Minute)
		timer.Stop()
		if p.wake(); fired(timer.C()) {
			t.Error("the timer fired")
		}
	})
}

func TestAFastClockIsThereEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := &Clock{Process: &sleeper{}, Start: start, Offset: time.Hour, Rate: 1.25}
		c.BootWait(c.BootTime()+50*time.Second, nil)
		if took := time.Since(start).Round(time.Millisecond); took != 40*time.Second {
			t.Errorf("50 seconds of a clock that is fast by a quarter took %s", took)
		}
		if ahead := time.Until(c.Now()); ahead != time.Hour {
			t.Errorf("the wall clock is ahead by %s", ahead)
		}
	})
}
