// Package differential compares the API server that test/simulation simulates with the real one of the local
// control plane, since a simulation is worth what its model is worth.
//
// A seed gives sequences of steps: creations, deletions, patches of every shape, reads, lists and watches of
// Deployments, StatefulSets, ReplicaSets, Jobs and Pods. About half of them are made by idalloc's own code (pkg/allocator/store
// and pkg/watch), so their shapes are those of production. Both servers get each sequence, step by step, and
// every answer is compared: its code and reason, and of the objects what idalloc reads (view_test.go). A UID is
// compared by which object it is of, a resourceVersion by its place among those seen, a time by whether there is one. Watches are
// compared, object by object, when the sequence waits for them. The report of a difference has the steps up to it,
// less those that it does not need.
//
// There are no controllers on either side. known_test.go lists the differences that are left, and why idalloc
// cannot see them.
package differential
