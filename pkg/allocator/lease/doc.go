// Package lease maintains the Lease of the slot that one process holds, and tracks its expiry (strict mode).
//
// A Guard writes the Lease and renews it. It detects the expiry of this Lease, and of other pods' Leases, by a clock that advances during suspend. It does
// not decide what to do then.
package lease
