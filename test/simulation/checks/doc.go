// Package checks judges a history: which promises of idalloc were broken, and when.
//
// The judge looks at what processes act under and at what is stored, and believes nothing else. These are the promises:
//
//   - No two pods act under one id or on one partition. A later holder's token is higher, and no token is two pods'.
//   - Each receipt that is written has bytes that were never there, and none is written after a later one.
//   - A pod that can continue does so soon.
//   - When the faults stop, no pod waits beside a free slot. After an operator's repairs every slot is held, no pod
//     waits, and the owner says so.
//   - No pod moves without a cause.
//   - Requests are few.
//
// excuses.go has all excuses for the first of them. The judge changes nothing in the world. A checker that cannot fail is
// worth nothing, so these must catch mutants of the production code.
package checks
