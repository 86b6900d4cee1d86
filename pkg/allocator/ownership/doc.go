// Package ownership decides which id owns which partitions. It is for idalloc's own packages; other programs must not rely
// on it.
//
// Plan is a pure function. Its input is what is in force and who owns what, what the user wants, and what the live pods'
// receipts say. Its output is what is to be in force. Package plan calls it after it has planned the slots, so that one
// write changes both. It does no I/O and reads no clock.
//
// The rules have the numbers that they have in docs/protocol.md, which says why they are safe:
//
//  7. A partition that a live pod's receipt locks is given to no other id. If the map is not clean, the locks are the
//     ownership.
//  8. A partition leaves the id of a live holder only if that pod's receipt yields it. What is yielded, what is nobody's,
//     and what an id owns that is no member any more goes to its target in one write.
//  9. A pod takes back what it yielded only after the map has taken it away (see package allocator).
//  10. The partitions of an id without a holder stay with it for failover-after. Then the id is no member any more.
//  11. The partitions of an id at or above the count go with the slot. In strict mode the partitions of an id in quarantine
//     stay with it.
//
// While a live pod that does not work on partitions has a slot below the count, as in the rollout that brings partitions or
// takes them away, nothing is given out and nobody becomes or ceases to be a member. Its next process may work on partitions, and take
// what the map gives to its id without a write of the owner. So its id loses nothing, either.
package ownership
