// Package inject adds idalloc's native sidecar, or what an id of idalloc-controller needs, to the pod templates of workloads, in a stream of
// YAML documents. It does to a template what the policies of config/inject and config/assign do to a pod, so that both ways give the
// same pod (test/envtest/inject).
//
// It has no I/O. What it does not have to change keeps its bytes: a document without a workload, a workload that does not ask for
// the sidecar, and a workload that has it already. A document that it changes keeps its comments, its order and fields that
// Kubernetes does not know; it loses its blank lines, and aliases become copies.
package inject
