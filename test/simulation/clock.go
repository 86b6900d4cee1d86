package simulation

import (
	"time"

	"k8s.io/utils/clock"
)

// machineClock is a process's clock: off by offset, and in boot time fast or slow. Its timers stand still while
// the process is suspended.
type machineClock struct {
	p      *process
	offset time.Duration
	rate   float64
}

// Now implements clock.Clock.
func (c *machineClock) Now() time.Time { return time.Now().Add(c.offset) }

// Since implements clock.Clock.
func (c *machineClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After implements clock.Clock.
func (c *machineClock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Sleep implements clock.Clock.
func (c *machineClock) Sleep(d time.Duration) { <-c.After(d) }

// Tick implements clock.Clock. Nothing here uses it.
func (c *machineClock) Tick(time.Duration) <-chan time.Time {
	panic("simulation: a process's clock does not tick")
}

// NewTimer implements clock.Clock.
func (c *machineClock) NewTimer(d time.Duration) clock.Timer {
	t := &timer{clock: c, c: make(chan time.Time, 1)}
	t.timer = time.AfterFunc(d, t.fire)
	return t
}

type timer struct {
	clock   *machineClock
	c       chan time.Time
	timer   *time.Timer
	stopped bool
}

// C implements clock.Timer.
func (t *timer) C() <-chan time.Time { return t.c }

// Stop implements clock.Timer.
func (t *timer) Stop() bool {
	t.clock.p.w.Alone(func() { t.stopped = true })
	return t.timer.Stop()
}

// Reset implements clock.Timer.
func (t *timer) Reset(d time.Duration) bool {
	t.clock.p.w.Alone(func() { t.stopped = false })
	return t.timer.Reset(d)
}

func (t *timer) fire() {
	t.clock.p.w.Alone(func() {
		t.clock.p.whenAwake(func() {
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
func (c *machineClock) BootTime() time.Duration {
	return time.Hour + time.Duration(c.rate*float64(time.Since(c.p.w.start)))
}

// BootWait implements boottime.Source.
func (c *machineClock) BootWait(until time.Duration, done <-chan struct{}) {
	for {
		left := until - c.BootTime()
		if left <= 0 {
			break
		}
		timer := time.NewTimer(time.Duration(float64(left)/c.rate) + 1)
		select {
		case <-timer.C:
		case <-done:
			timer.Stop()
			c.p.Thawed()
			return
		}
	}
	c.p.Thawed()
}
