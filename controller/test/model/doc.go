// Package model explores every history of a few pods for which controllers take slots, or plan. The controllers follow decision.Decide, and agents and a
// peer beside them follow duty.Step: the decisions that are shipped. It is exhaustive within budgets of faults and writes, and prints the
// shortest history in which two programs run under one id.
//
// What a controller decides on may be old. Its view of each pod is whatever its watch showed at any time, and each count and each map of the owner is
// possible at each step. So no plan and no foreign write of the map can bring in a history that is not explored. What else goes wrong: a controller
// forgets everything and sees pods as they once were, two controllers lead at once, writes get no answer and arrive at any later time or never, pods
// are deleted and replaced, and gates are removed by hand. A receipt that is removed, and a pod that comes from another owner, are beyond what the
// proof assumes. They are explored apart: the harm ends.
//
// An agent may take at any time what any map proposes, and begins when its own pod says that T3 has confirmed the very receipt that it wrote. It may list by
// itself at any time before that. A late confirmation can do no harm even without its test of the receipt, because the agent compares the bytes, too.
//
// The writes are those of package reconciler and of pkg/allocator/store: what they change, and what the reconciler takes over from an answer. They are
// copied here, so a change there needs one here. Those of receipts test less here: the bytes, and of Begin the gate and that the pod is not
// Terminating. There, nothing at all may have changed on the pod. So the histories here contain those there.
//
// T3 is one list here. There it is two, at two moments. The first has the owner's locks: a lock of its slot that comes later is that of a taker who sees
// this one. The second is for a pod that runs under the owner's id and whose lock is moved between owners meanwhile. It shows the pods of the owner's
// selector with whatever they lock, so such a pod is in it at any moment.
//
// From each state the model also runs without faults until nothing changes, with each map at the start. No gate stays then while an id is free.
//
// A model that cannot fail shows nothing: each step is left out once, and the test must find a history with two at work.
package model
