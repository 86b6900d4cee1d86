// Package model explores every history of a few pods that follow pkg/allocator/duty, the decisions that are shipped. It is exhaustive within
// budgets of faults and writes, and prints the shortest history in which two live pods are at work on one thing.
//
// The owner does not occur. Whatever its map may say, now or at any earlier time, is proposed to each process at each step, so no plan and no
// foreign write can bring in a history that is not explored. What else goes wrong: processes end, and their work may go on; writes get no
// answer, and arrive at any later time or never; pods are replaced under their names. In strict mode pods lose contact, and are deleted by force
// while they work, outlive their grace periods, and lose Leases to other clients. The next process of a pod may be strict. A removed receipt is
// beyond what the proof assumes, and is explored apart.
//
// A model that cannot fail shows nothing: each step of the protocol is left out once, and the test must find a history with two at work.
package model
