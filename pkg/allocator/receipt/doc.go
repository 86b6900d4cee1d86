// Package receipt reads and writes what a pod says about itself in the annotation Key: the lock of its slot and of its partitions.
//
// A receipt says one of three things of its pod: it locks a slot, it waits for one, or it gave its slot up. It counts only on the pod whose
// UID it has. The labels IDLabel and OwnerLabel, which are written with it, find those that lock something.
package receipt
