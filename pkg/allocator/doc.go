// Package allocator is the loop that claims an id for one pod, keeps it, moves it and gives it back.
//
// It is for programs that need more than package context gives, which is the stable API: this one may change with any version.
//
// An Allocator plans with package plan, commits with package store, and hears of changes through
// package watch. It promises: nobody acts on an id before the owner was read twice with the pod's
// receipt written in between (take), and a slot is given away only after the work under it has
// stopped and the receipt says so (give). docs/protocol.md has the argument why this is enough.
//
// It does not promise that a process notices in time that its pod was force-deleted: until then
// two processes may act under one id. Kubernetes makes the same exception for a StatefulSet.
package allocator
