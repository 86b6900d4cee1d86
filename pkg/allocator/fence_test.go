package allocator

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// handClock is moved by hand.
type handClock struct{ at time.Duration }

func (c *handClock) now() time.Duration { return c.at }

// BootTime and BootWait make it a boottime.Source.
func (c *handClock) BootTime() time.Duration                 { return c.at }
func (c *handClock) BootWait(time.Duration, <-chan struct{}) {}

func TestLease(t *testing.T) {
	const length = 4 * time.Second
	start := func() (*handClock, *lease) {
		c := &handClock{at: time.Hour}
		return c, newLease(length, c.at, c.now)
	}
	t.Run("lasts from the sending of the request", func(t *testing.T) {
		c := &handClock{at: time.Hour}
		sent := c.at - time.Second
		l := newLease(length, sent, c.now)
		if l.deadline() != sent+length {
			t.Errorf("the deadline is %s, want %s", l.deadline(), sent+length)
		}
		c.at = sent + length - 1
		if l.expired() {
			t.Error("it expired before its time")
		}
		c.at = sent + length
		if !l.expired() {
			t.Error("it did not expire in time")
		}
	})
	t.Run("is over at once when the answer took longer than it lasts", func(t *testing.T) {
		c := &handClock{at: time.Hour}
		if l := newLease(length, c.at-length, c.now); !l.expired() {
			t.Error("it did not expire")
		}
	})
	t.Run("is renewed from the sending, not from the answer", func(t *testing.T) {
		c, l := start()
		c.at += 3 * time.Second
		sent := c.at - time.Second
		l.renew(sent)
		if l.deadline() != sent+length {
			t.Errorf("the deadline is %s, want %s", l.deadline(), sent+length)
		}
	})
	t.Run("is never shortened by a late answer to an early request", func(t *testing.T) {
		c, l := start()
		c.at += 2 * time.Second
		l.renew(c.at)
		until := l.deadline()
		l.renew(c.at - time.Second)
		if l.deadline() != until {
			t.Errorf("the deadline moved from %s to %s", until, l.deadline())
		}
	})
	t.Run("stays over although nobody looked when it ended", func(t *testing.T) {
		c, l := start()
		c.at += length
		l.renew(c.at) // an answer that came at the deadline
		if !l.expired() {
			t.Error("it was renewed after its end")
		}
		c.at -= time.Second
		if !l.expired() {
			t.Error("a clock that stepped back brought it back")
		}
	})
}

// Whatever is asked in whatever order: once over, over; never over before the last renewed deadline;
// always over at it.
func TestLeaseIsSticky(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := time.Duration(rapid.IntRange(1, 20).Draw(t, "length"))
		c := &handClock{}
		l := newLease(length, 0, c.now)
		until, over := length, false
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			c.at += time.Duration(rapid.IntRange(0, 8).Draw(t, "passes"))
			over = over || c.at >= until
			if rapid.Bool().Draw(t, "renew") {
				sent := c.at - time.Duration(rapid.IntRange(0, 8).Draw(t, "ago"))
				l.renew(sent)
				if !over {
					until = max(until, sent+length)
					over = c.at >= until
				}
			}
			if got := l.expired(); got != over {
				t.Fatalf("at %d, deadline %d: expired() = %t, want %t", c.at, until, got, over)
			}
		}
	})
}

func TestFenceOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		o    Options
		good bool
	}{
		"off":                        {Options{}, true},
		"the shortest":               {Options{FenceAfter: MinFenceAfter}, true},
		"below it":                   {Options{FenceAfter: MinFenceAfter - 1}, false},
		"negative":                   {Options{FenceAfter: -time.Second}, false},
		"the longest":                {Options{FenceAfter: assignment.MaxFenceAfter}, true},
		"beyond it":                  {Options{FenceAfter: assignment.MaxFenceAfter + 1}, false},
		"half of it to stop in":      {Options{FenceAfter: 10 * time.Second, FenceLead: 5 * time.Second}, true},
		"more than half to stop in":  {Options{FenceAfter: 10 * time.Second, FenceLead: 5*time.Second + 1}, false},
		"a negative time to stop in": {Options{FenceAfter: 10 * time.Second, FenceLead: -1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.o.checkFence(); (err == nil) != tc.good {
				t.Errorf("checkFence() = %v", err)
			}
		})
	}
}

func TestTheDeadlineOfWhatIsHeld(t *testing.T) {
	boot := &handClock{at: time.Hour}
	off := &strictMode{boot: boot}
	if _, deadline := off.left(); !off.begin(0) || deadline || off.over() {
		t.Error("without strict mode there is a deadline")
	}
	var told []time.Duration
	s := &strictMode{boot: boot, after: 30 * time.Second, lead: 10 * time.Second, tell: func(by time.Duration) { told = append(told, by) }}
	start := boot.BootTime()
	if s.begin(start - 20*time.Second) {
		t.Error("a confirmation that was asked for too long ago counts")
	}
	if _, deadline := s.left(); deadline {
		t.Error("and leaves a deadline")
	}
	if !s.begin(start - 5*time.Second) {
		t.Fatal("a fresh one does not count")
	}
	boot.at += time.Second
	s.renew(start)
	if left, ok := s.left(); !ok || left != 19*time.Second {
		t.Errorf("%s is left, %t, want 19s: less by the time that the work needs to stop", left, ok)
	}
	s.stop()
	boot.at += 19 * time.Second
	if !s.over() {
		t.Error("it is not over in time")
	}
	s.renew(start + 15*time.Second)
	if !s.over() {
		t.Error("what is over comes back")
	}
	boot.at += time.Minute
	s.stop()
	if want := []time.Duration{start + 11*time.Second, start + 30*time.Second}; !slices.Equal(told, want) {
		t.Errorf("the work is to stop by %v, want %v: at once, but never later than the deadline", told, want)
	}
}
