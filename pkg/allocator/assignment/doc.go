// Package assignment defines the data that idalloc stores on an owner, and its codec. It is for idalloc's own packages. Other programs may rely on the
// stored formats, which docs/contract.md describes, but not on this Go API.
//
// The package is pure: it has no Kubernetes client, does no I/O, and reads no clock. It writes a canonical form (numeric key order, no spaces), so equal
// states have equal bytes. It reads strictly: an error names the damaged part of an annotation, and a damaged annotation is treated as if it were absent.
package assignment
