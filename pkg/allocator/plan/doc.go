// Package plan decides which pod gets which slot. It is for idalloc's own packages; other programs must not rely on it.
//
// Plan is a pure function. Its input is the owner's state, the live pods with their receipts, the planner, and the time.
// Its output is the owner's next state, or "nothing to do". It does no I/O and reads no clock. The same input gives the
// same output.
//
// The safety of the result rests on three duties of the caller:
//
//   - It reads the owner first and lists the pods second, both with consistent reads.
//   - It confirms by a live read that each holder is dead that is not among the pods.
//   - It commits the result only if nothing but the owner's status has changed since it read the owner.
//
// The planner is the pod that Input.Me names. The code calls it me. The rules have the numbers that they have in
// docs/protocol.md, which states them in full. testdata shows each of them in cases:
//
//  1. A slot that a live pod's receipt names is never given to another pod. If the map is not clean, the receipts are
//     the assignment.
//  2. Slots of dead holders are free. Requests that can no longer be met are dropped.
//  3. A free slot that a pod asked for goes to that pod.
//  4. Other free slots go to waiters: the planner and its siblings, oldest first.
//  5. In a clean map nobody touches the entry of another live pod, unless that pod's receipt gives the slot.
//  6. In a rolling update a waiter of the current revision asks a pod of an older revision for its slot (see ask.go).
package plan
