// Package pace decides when it is a process's turn. Thousands of pods may want to change one object at the same moment, and one
// write can serve all of them. So each waits for a random time, whose length follows from how many there are and from how fast the
// API server answers; most hear of another pod's write before their own turn comes. docs/performance.md derives the figures.
//
// The package reads no clock and makes no request: callers measure, and wait.
package pace
