package assignment

import "time"

// Times of strict mode.
const (
	// StopGrace is for how long work may go on after fence-after, while it is being stopped.
	StopGrace = 10 * time.Second
	// MaxFenceAfter is the longest fence-after.
	MaxFenceAfter = time.Hour
)
