// Package plan decides who gets which slot.
//
// Plan is a pure function: the owner's state, the live pods with their receipts, who asks, and the
// time, to the owner's next state or "nothing to do". It does no I/O and reads no clock; the same
// input gives the same output. The caller owes it three things, on which the safety of the result
// rests: the owner was read first and the pods were listed second, with consistent reads; a holder
// that is not among the pods was confirmed dead by a live read; and the result is committed only if
// nothing but the owner's status changed since it was read.
//
// The rules are those of docs/protocol.md, by the same numbers. testdata shows each of them in cases:
//
//  1. A slot that a live pod's receipt names is never given to another pod. If the map is not
//     clean, the receipts are the assignment.
//  2. Slots of dead holders are free; requests that can no longer be met are dropped.
//  3. A free slot that is asked for goes to its requester.
//  4. Other free slots go to waiters: me and my siblings, oldest first.
//  5. In a clean map the entry of a live pod other than me is never touched.
//  6. In a rolling update a waiter of the current revision asks an older one's pod for its slot (see ask.go).
package plan
