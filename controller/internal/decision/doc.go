// Package decision decides what the controller does about one owner. It is pure: no I/O, no clock.
//
// Decide reads what is known of the owner and its pods, and returns everything that should be done. The reconciler does the first step that is due, as returned
// by Decision.First, and decides again. The steps are those of docs/protocol.md, done for pods that cannot take for themselves:
//
//   - Plan. The map proposes slots, by package proposal.
//   - Take (T2). A gated pod gets a receipt that locks the slot that the map proposes.
//   - Confirm (T3). One list from the API server shows the receipts of the owner. It is evidence only for what it asked for.
//   - Begin. If the list shows the pod's receipt as it was written, and no other live pod locks the slot, the receipt is written again as begun, and the gate
//     is removed.
//   - Withdraw. If the list shows another lock of the slot, or another pod that runs under it without a receipt, the pod waits again. A pod that has begun
//     never withdraws. If it loses its lock to another pod, it is removed.
//
// The receipt determines the next step, never the gate: the controller's view of a gate may be old.
package decision
