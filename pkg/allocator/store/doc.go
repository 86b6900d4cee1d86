// Package store reads and writes what idalloc keeps in Kubernetes: an owner's state, committed by
// compare-and-swap, and a pod's receipt.
//
// Every read is a consistent read (no resourceVersion), every write is one JSON Patch whose tests
// and changes the API server applies as one, and every outcome is told apart: accepted, ErrConflict
// (read again and plan again), ErrAmbiguous (the write may still happen: read again before anything
// else), ErrGone, ForbiddenError, or another error that repeating does not cure.
package store
