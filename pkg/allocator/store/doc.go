// Package store reads and writes the data that idalloc keeps in Kubernetes: an owner's state, a pod's receipt, and Leases. Other
// programs may use a Store to call the packages watch and gc. The rest is for idalloc's own packages and may change with
// any version.
//
// Every read is consistent: it sends no resourceVersion. Every write is one JSON Patch, whose tests and changes the API server applies atomically. Two
// writes use the version that was read instead: an update of a Lease, and a merge patch of a receipt by the controller. A write has one of these outcomes:
//
//   - The server accepted it.
//   - ErrConflict: the object has changed. Read again and plan again.
//   - ErrAmbiguous: the write may still happen. Read again before anything else.
//   - ErrGone: the object does not exist any more.
//   - *ForbiddenError: RBAC does not allow it. Repeating does not help.
//   - Any other error. Temporary reports whether repeating may help.
//
// Every single request ends after RequestTimeout at the latest.
package store
