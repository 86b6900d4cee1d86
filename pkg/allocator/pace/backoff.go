package pace

import "time"

const (
	minDelay = 50 * time.Millisecond
	// MaxDelay is the longest time between two tries.
	MaxDelay = 10 * time.Second
)

// Backoff is the time before the next try. It doubles from 50 ms to MaxDelay, and each is drawn from the upper half.
type Backoff struct {
	random func() float64
	delay  time.Duration
}

// Next doubles the time, and draws one.
func (b *Backoff) Next() time.Duration {
	b.delay = min(max(2*b.delay, minDelay), MaxDelay)
	return b.Current()
}

// Current draws a time without doubling it; it is 0 after Reset.
func (b *Backoff) Current() time.Duration {
	return time.Duration((0.5 + b.random()/2) * float64(b.delay))
}

// Reset begins anew.
func (b *Backoff) Reset() { b.delay = 0 }

// Most has the next times be the longest.
func (b *Backoff) Most() { b.delay = MaxDelay }
