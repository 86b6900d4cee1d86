// Package webhook serves the mutating webhook that completes new pods that ask for an id or for the sidecar. It is for API servers without
// MutatingAdmissionPolicy. internal/inject decides what a pod gets.
//
// Every replica serves. Unless a directory has the certificates, the replicas make them, share them in a Secret, and keep the caBundle of the configuration up
// to date.
package webhook
