// Package assignment holds the data that idalloc stores, and its codec. It is for idalloc's own packages. Other
// programs may rely on the stored formats, which the README describes, but not on this Go API.
//
// On the owner are the assignment, its epoch, and its seal. On each pod is a receipt.
//
// The package is pure: it has no Kubernetes client, does no I/O, and reads no clock. It writes a canonical form
// (numeric key order, no spaces), so equal states have equal bytes. It reads strictly: an error names the damaged
// part of an annotation, and no part of a damaged annotation is trusted.
package assignment
