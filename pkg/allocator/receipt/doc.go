// Package receipt reads and writes the annotation Key of a pod: the lock of its slot and of its partitions.
//
// A receipt has one of three meanings: its pod locks a slot, waits for one, or gave its slot up. It is valid only on the pod with its UID. The labels
// IDLabel and OwnerLabel, which are written with it, find the receipts that lock something.
package receipt
