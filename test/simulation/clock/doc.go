// Package clock is what time it is on a simulated machine.
//
// Time itself is that of a testing/synctest bubble. Each machine has a wall clock, which may be hours off, and a
// boot-time clock, which may be fast or slow. A process that is suspended hears of no timer until it is resumed. Clocks
// do not jump.
package clock
