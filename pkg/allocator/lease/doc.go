// Package lease keeps the Lease of the slot that one process holds, and its time (strict mode).
//
// A Guard writes the Lease and renews it. It knows by a clock that advances during suspend when its time is over, and by the same clock when those of
// other pods are. It does not decide what to do then.
package lease
