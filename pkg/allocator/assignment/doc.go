// Package assignment is the data that idalloc stores and its strict codec: the assignment, its
// epoch and seal on the owner, and the receipt on each pod.
//
// It is pure: no Kubernetes client, no I/O, no clock. What is written is canonical (numeric key
// order, no spaces), so equal states have equal bytes. What is read is checked: whoever damaged an
// annotation is told which part of it is wrong, and no part of a damaged annotation is trusted.
package assignment
