// Package checks judges a history: which promises of idalloc were broken, and when.
//
// The judge looks at what processes act under and at what is stored, and believes nothing else. It checks that no two pods act under one id,
// that a later holder's token is higher, that all operations on an id fit an order, that whoever can go on does so soon, that
// nobody moves without a cause, that requests are few, and that in the end nobody waits beside a free slot. It draws nothing that changes a
// history and does nothing to the world.
//
// A checker that cannot fail is worth nothing: the mutants of the simulation are to be caught by these.
package checks
