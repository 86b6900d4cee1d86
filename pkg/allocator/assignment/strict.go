package assignment

import "time"

// Times of strict mode.
const (
	// StopGrace is how long work may continue after fence-after, while it is being stopped.
	StopGrace = 10 * time.Second
	// MaxFenceAfter is the longest fence-after.
	MaxFenceAfter = time.Hour
)
