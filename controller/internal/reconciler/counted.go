package reconciler

import "time"

// settleMost is how many times the wait for a count that stands still may take if it never does.
const settleMost = 10

// counted is the count that an owner has, since when, and since when it has changed again and again.
type counted struct {
	count        int
	since, first time.Time
	settled      time.Time
}

// settles returns when the count has stood still for that long. While it changes all the time, that is ten times as long after the first change.
func (c *counted) settles(count int, after time.Duration, now time.Time) time.Time {
	if c.since.IsZero() || count != c.count {
		if c.since.IsZero() || !c.settled.After(now) {
			c.first = now
		}
		c.count, c.since = count, now
	}
	c.settled = c.since.Add(after)
	if last := c.first.Add(settleMost * after); last.Before(c.settled) {
		c.settled = last
	}
	return c.settled
}
