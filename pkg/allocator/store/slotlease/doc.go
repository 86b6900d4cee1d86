// Package slotlease is the Lease that locks one slot in strict mode: its name, what it says, and its form as an API object. It is pure.
package slotlease
