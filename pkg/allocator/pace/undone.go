package pace

import "time"

const (
	// lasting is how long a write has to stand to count as not undone.
	lasting = time.Minute
	// minDamping is how much later the next try comes when they did so once.
	minDamping = 100 * time.Millisecond
	// MaxDamping is the longest time by which it comes later.
	MaxDamping = 10 * time.Second
)

// Undone counts how often in a row another writer undid a write, and knows when that was last repeated. It is not safe for concurrent use.
type Undone struct {
	times int
	at    time.Time
}

// Again takes in that the write is repeated now. It returns how often in a row it was undone, each time within a minute.
func (u *Undone) Again(now time.Time) (times int) {
	if u.times++; now.Sub(u.at) >= lasting {
		u.times = 0
	}
	u.at = now
	return u.times
}

// Damping is how much later the next try comes: nothing, then 0.1 s, and twice as much each time, up to ten seconds.
func (u *Undone) Damping() time.Duration {
	if u.times == 0 {
		return 0
	}
	return min(minDamping<<min(u.times-1, 16), MaxDamping)
}

// Left is for how long the next try waits still. It is not positive if that may come.
func (u *Undone) Left(now time.Time) time.Duration { return u.at.Add(u.Damping()).Sub(now) }
