// Package overlay builds the simulator so that a seed gives one history.
//
// In a bubble of testing/synctest time moves only when no goroutine can run, so two events at different nanoseconds never
// race. What is left is Go's own randomness: select, map order, math/rand, and the order of timers that are due at one
// moment. The overlay replaces a few lines of Go's runtime, so that all of these are functions of virtual time. It
// fits one version of Go, and Build fails with another one that has other lines. Without the overlay a seed gives
// nearly the same history.
package overlay
