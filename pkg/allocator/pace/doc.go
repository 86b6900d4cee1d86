// Package pace decides how long a process waits before its turn comes. It is for idalloc's own packages; other programs
// must not rely on it.
//
// Thousands of pods may want to change one object at the same moment, and one write can serve all of them. So each
// pod waits for a random time. The time is longer the more pods there are, and the slower the API server answers.
// Most pods hear of another pod's write before their own turn comes. docs/performance.md derives the figures.
//
// The package reads no clock and makes no request. Callers measure and wait.
package pace
