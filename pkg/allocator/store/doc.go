// Package store reads and writes the data that idalloc keeps in Kubernetes: an owner's state, a pod's receipt, and Leases. Other
// programs may use a Store to call the packages watch and gc. The rest is for idalloc's own packages and may change with
// any version.
//
// Every read is consistent: it sends no resourceVersion. Every write is one JSON Patch, whose tests and changes the API server applies atomically. Two
// writes use the version that was read instead: an update of a Lease, and a merge patch of a receipt by the controller. Package request
// lists the outcomes of a write and tells them apart.
package store
