// Package proposal decides which pod should have which slot, and which id should own which partitions. It is for idalloc's own packages;
// other programs must not rely on it.
//
// Plan is a pure function of the owner's state, the live pods with their receipts, the planner, and the time. It does no I/O and reads no clock. Its result
// is a proposal. Receipts are the locks: a pod that takes a proposed slot first lists them. So a wrong plan costs time, but never an id.
//
// These are the rules. testdata has cases for each of them.
//
//  1. Locks. A slot that the receipt of exactly one live pod locks is that pod's, regardless of the map and the count. If the
//     receipts of several pods lock it, the entry of one of these pods stays, and no other pod is proposed. A strict pod that has outlived
//     its grace period counts as gone: its Lease protects what it locks.
//  2. Entries. Any other entry stays if its pod lives, has no other slot, has not given up and is not Terminating, if the slot is below the
//     count, and if no receipt locks the slot. All other entries go.
//  3. Requests. A request stays while its requester waits and its slot is below the count. A planner of the current revision keeps only
//     those of its siblings. A free slot that is asked for goes to its requester.
//  4. Waiters. The other free slots below the count go to the planner and its siblings, by rank, then by age. A pod with an ordinal below
//     the count waits for that slot, unless a live pod that is not Terminating has it. A gated pod that is condemned gets none. If
//     slots are scarce, the planner comes first among pods of its rank, and siblings whose programs are not known to run plan for themselves.
//  5. Ranks. A waiter has rank 0 if it never gave a slot up, 1 if it did, and 2 if its program failed. While live pods outnumber the count, it
//     leaves a free slot to pods of a lower rank: for ten seconds with rank 1, and for a minute with rank 2. A planner that leaves one gives
//     none to its siblings. Rank 1 counts as 0 for a pod that is, or may be, of the current revision.
//  6. Asking. A planner of the current revision for which there is no slot asks pods of other revisions for theirs. A pod of a StatefulSet asks
//     condemned ones, whose ordinals the StatefulSet no longer has (see ask.go).
//  7. Members. The ids below the count whose holders work on partitions divide them. An id whose slot no pod locks stays a member until the planner
//     has known it vacant for long enough; with primary, by default, until no pod that is known to run is about to take it. An id whose holder
//     works on none is no member.
//  8. Partitions. A partition that exactly one live pod locks is that of the pod's id. If it is locked in any other way, it stays where the
//     row has it. If no pod locks it, it goes to its target.
//  9. In force. The user sets the number of partitions. Otherwise the row does, and otherwise the receipts do.
package proposal
