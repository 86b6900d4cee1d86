// Package decision decides what the controller does about one owner. It is pure: no I/O, no clock.
//
// Decide reads what is known of the owner and its pods, and returns everything that is to be done. The reconciler does the first step that is due, as
// Decision.First says, and decides again. The steps are those of the page on the protocol, done for pods that cannot take for themselves:
//
//   - Plan. The map proposes slots, by package proposal.
//   - Take (T2). A gated pod gets a receipt that locks the slot which the map proposes.
//   - Confirm (T3). One list from the API server shows the receipts of the owner. It is evidence for what it was about, and for nothing else.
//   - Begin. The list shows the pod's receipt as it was written, and no other live pod's lock of the slot. So the receipt is written again, begun,
//     and the gate goes.
//   - Withdraw. The list shows another lock of the slot, or another pod runs under it whose receipt was removed. The pod waits again. A pod that
//     has begun never withdraws. If it loses its lock to another pod, it is removed.
//
// The receipt says what comes next, and never the gate: what a controller knows of a gate may be old.
package decision
