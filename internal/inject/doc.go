// Package inject adds idalloc's native sidecar, or what an id of idalloc-controller needs, to the pod templates of workloads, in a stream of
// YAML documents, and to new pods, for the webhook. The policies of config/inject and config/assign do the same to a pod. A table of pods holds
// them against this package (controller/test/envtest/testdata/pods.yaml).
//
// It has no I/O. What it does not have to change keeps its bytes: a document without a workload, a workload that does not ask for
// the sidecar, and a workload that has it already. A document that it changes keeps its comments, its order and fields that
// Kubernetes does not know; it loses its blank lines, and aliases become copies.
package inject
