package pace

import "time"

const (
	// lasting is how long a write must last to count as not undone.
	lasting = time.Minute
	// minDamping is the delay of the next try after a write was undone once.
	minDamping = 100 * time.Millisecond
	// MaxDamping is the longest delay.
	MaxDamping = 10 * time.Second
)

// Undone counts how often in a row another writer undid a write, and records when the write was last repeated. It is not safe for concurrent use.
type Undone struct {
	times int
	at    time.Time
}

// Again records that the write is repeated now. It returns how often in a row it was undone, each time within a minute.
func (u *Undone) Again(now time.Time) (times int) {
	if u.times++; now.Sub(u.at) >= lasting {
		u.times = 0
	}
	u.at = now
	return u.times
}

// Damping returns the delay of the next try: nothing, then 0.1 s, and twice as much each time, up to ten seconds.
func (u *Undone) Damping() time.Duration {
	if u.times == 0 {
		return 0
	}
	return min(minDamping<<min(u.times-1, 16), MaxDamping)
}

// Left returns how long the next try must still wait. It is not positive if the try may come now.
func (u *Undone) Left(now time.Time) time.Duration { return u.at.Add(u.Damping()).Sub(now) }
