// Package placement divides numbered partitions among the ids of a workload: which id works on which of P queues, shards or
// key ranges. It is pure. It does no I/O, reads no clock and imports no Kubernetes client, so a program that only reads
// the published files, or only compares strategies, links nothing else.
//
// # Sets and owners
//
// A partition is a number from 0. A [Set] is a set of them, which prints as "0-15,40". [Owners] maps each id to its set:
// {"0":"0-15,40","1":"16-31","2":""}. An id in the map is a member, even with an empty set. Both have one canonical text. [Parse] and [ParseOwners] refuse
// any other, so two programs that store the same thing store the same bytes. [ParseTarget] reads what a person wrote, in any order.
//
// # Strategies
//
// A [Strategy] is a pure function from an [Input] to the desired owners: the target. The input comes from one read of the owner. The same input gives the
// same target in every process. [Named] finds the strategies by name:
//
//   - range: each member has one run of partitions. The last one also has the remainder.
//   - even: each member has one run, and the first ones have one more if the numbers do not divide.
//   - sticky: the counts differ by at most one, and as few partitions as possible move.
//   - primary: each partition has a first choice among all ids below the count, and the next member stands in for it.
//   - external: another program sets the owners, and sticky's rule places the rest.
//
// The target stays the same on the way to it, regardless of which moves were done, in which order, and of partitions without an owner. So no partition
// moves twice for one change of the members. The rule of sticky is designed for that. Each of these steps depends only on what no move on the way changes:
//
//  1. P mod k of the k members have one partition more than the others: first those that have more already, lower ids
//     first, then the lowest of the others.
//  2. A member that has too many gives its highest. These, and partitions without an owner or of ids that are no members, are placed.
//  3. They are placed in ascending order, each with the member that has the fewest partitions below it. Of two
//     such members, the lower id gets it. Only members with room are asked. The member with the fewest in all would not do: with
//     three partitions and the members 0 and 1 the target would change when a partition comes to id 0, and another one would move.
//
// A program may have its own strategy: any function of this type that gives each partition to at most one member. It must also be stable on the way, or
// partitions move more than once.
//
// # What it does not promise
//
// A target is no permission to work. Only a map that idalloc stored, and the steps of docs/protocol.md, make a partition exclusive. [Range] divides
// partitions by id and count alone, so nothing is exclusive while the count changes.
package placement
