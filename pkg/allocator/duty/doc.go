// Package duty decides what a process does next about the slot and the partitions of its pod. It is pure: it makes no request, reads no clock
// and starts no goroutine. The loop asks Next, does the one thing that it says, notes in the LockState what came of it, and asks again.
//
// # Why no two
//
// The receipt on a pod locks its slot and its partitions. The map on the owner only proposes. A pod takes what is proposed to it in two steps:
//
//	T2 (Write)  its receipt locks it. The write is a swap: it fails unless the pod is this one and its receipt is the one that this
//	            process knows. It always writes bytes that were never there, so a late write finds its old bytes gone.
//	T3 (List)   it lists the receipts of the other live pods. What one of them locks, it may not have.
//
// A pod takes what its watch shows, and does not read the owner again: for a thousand pods that would be a thousand more requests, each with the
// whole map in its answer. If the proposal is an old one, T3 shows the receipt of the pod that has the slot.
//
// Of two pods that want one thing, the one that lists later sees the other's lock, and does not begin. The other's lock stays until its work
// has stopped. Nothing that is written on the owner occurs in this. It needs that no other program takes out of a live pod's receipt what that
// pod works on.
//
// A process that ends leaves its pod's receipt, and perhaps work. The next one takes what the receipt locks once more, with T2 and T3, and
// stops any other work first. After T3 a pod notes in its receipt what it holds. A pod that locks that without such a note came later, so the
// next process does not give way.
//
// In strict mode a Lease locks the same beside the receipt. It outlives its pod: it ends when its time is over, and its holder's work has
// stopped by then. Before T2 the pod has the Lease of its slot (Secure). After T3 it lists the other Leases (Survey), too.
//
// test/model explores every history of a few pods, whatever is proposed to them. test/proof proves the protocol for any number of pods.
package duty
