package clock

import (
	"time"

	k8sclock "k8s.io/utils/clock"
)

// Process is what runs by a clock.
type Process interface {
	// Alone runs do while nothing else happens.
	Alone(do func())
	// WhenAwake runs do now, or when the process is resumed. It is called while nothing else happens.
	WhenAwake(do func())
	// Thawed blocks while the process is suspended.
	Thawed()
}

// Clock is a process's clock: off by Offset, and in boot time fast or slow. Its timers stand still while
// the process is suspended.
type Clock struct {
	Process Process
	// Start is when all machines were started.
	Start  time.Time
	Offset time.Duration
	// Rate is how fast boot time goes, 1 for right.
	Rate float64
}

// Now implements clock.Clock.
func (c *Clock) Now() time.Time { return time.Now().Add(c.Offset) }

// Since implements clock.Clock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After implements clock.Clock.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Sleep implements clock.Clock.
func (c *Clock) Sleep(d time.Duration) { <-c.After(d) }

// Tick implements clock.Clock. Nothing here uses it.
func (c *Clock) Tick(time.Duration) <-chan time.Time {
	panic("simulation: a process's clock does not tick")
}

// NewTimer implements clock.Clock.
func (c *Clock) NewTimer(d time.Duration) k8sclock.Timer {
	t := &timer{clock: c, c: make(chan time.Time, 1)}
	t.timer = time.AfterFunc(d, t.fire)
	return t
}

type timer struct {
	clock   *Clock
	c       chan time.Time
	timer   *time.Timer
	stopped bool
}

// C implements clock.Timer.
func (t *timer) C() <-chan time.Time { return t.c }

// Stop implements clock.Timer.
func (t *timer) Stop() bool {
	t.clock.Process.Alone(func() { t.stopped = true })
	return t.timer.Stop()
}

// Reset implements clock.Timer.
func (t *timer) Reset(d time.Duration) bool {
	t.clock.Process.Alone(func() { t.stopped = false })
	return t.timer.Reset(d)
}

func (t *timer) fire() {
	t.clock.Process.Alone(func() {
		t.clock.Process.WhenAwake(func() {
			if t.stopped {
				return
			}
			select {
			case t.c <- t.clock.Now():
			default:
			}
		})
	})
}

// BootTime implements boottime.Source.
func (c *Clock) BootTime() time.Duration {
	return time.Hour + time.Duration(c.Rate*float64(time.Since(c.Start)))
}

// BootWait implements boottime.Source.
func (c *Clock) BootWait(until time.Duration, done <-chan struct{}) {
	for {
		left := until - c.BootTime()
		if left <= 0 {
			break
		}
		timer := time.NewTimer(time.Duration(float64(left)/c.Rate) + 1)
		select {
		case <-timer.C:
		case <-done:
			timer.Stop()
			c.Process.Thawed()
			return
		}
	}
	c.Process.Thawed()
}
