// Package duty decides what a process does next about the slot and the partitions of its pod. It is pure: it makes no request, reads no clock and starts no
// goroutine. The loop asks Next, does the one thing that Next returns, records the result in the LockState, and asks again.
//
// # Why no two pods hold one id
//
// The receipt on a pod locks its slot and its partitions. The map on the owner only proposes. A pod takes what is proposed to it in two steps:
//
//	T2 (Write)  it writes a receipt with the lock. The write is a swap: it fails unless the pod has this UID and the receipt that this
//	            process knows. Each write has bytes that no earlier one had, so a late write fails because its expected bytes are gone.
//	T3 (List)   it lists the receipts of the other live pods. It must not use anything that one of them locks.
//
// A pod takes what its watch shows, without reading the owner again: for a thousand pods that would be a thousand more requests, each answered with the
// whole map. If the proposal is outdated, T3 shows the receipt of the pod that has the slot.
//
// If two pods want the same thing, the pod that lists later sees the other's lock and does not begin. That lock stays until the other pod's work has
// stopped. This does not depend on anything written on the owner. It requires that no other program removes from a live pod's receipt what that pod works
// on.
//
// A process that ends leaves its pod's receipt, and perhaps running work. The next process takes the same lock again, with T2 and T3, and first stops any
// work outside it. After T3 a pod notes in its receipt what it holds. A conflicting lock without such a note came later, so the next process does not give
// way to it.
//
// In strict mode a Lease locks the same as the receipt. It outlives its pod and ends when it expires; its holder's work has stopped by then. Before T2 the
// pod must have the Lease of its slot (Secure). After T3 it also lists the other Leases (Survey).
//
// test/model explores every history of a few pods, for all possible proposals. test/proof proves the protocol for any number of pods.
package duty
