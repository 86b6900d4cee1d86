package pace

import "time"

const (
	minDelay = 50 * time.Millisecond
	// MaxDelay is the longest time between two tries.
	MaxDelay = 10 * time.Second
)

// Backoff is the time before the next try. It doubles from 50 ms up to MaxDelay. Callers get a random time between half of it and all of it. Backoff is not
// safe for concurrent use.
type Backoff struct {
	random func() float64
	delay  time.Duration
}

// Next doubles the time and draws from it.
func (b *Backoff) Next() time.Duration {
	b.delay = min(max(2*b.delay, minDelay), MaxDelay)
	return b.Current()
}

// Current draws from the time without doubling it. The result is 0 after Reset.
func (b *Backoff) Current() time.Duration {
	return time.Duration((0.5 + b.random()/2) * float64(b.delay))
}

// Reset starts again from 0.
func (b *Backoff) Reset() { b.delay = 0 }
