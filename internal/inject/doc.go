// Package inject adds idalloc's native sidecar, or what an id of idalloc-controller needs, to pod templates in a stream of YAML documents, and to new pods, for
// the webhook. The policies of config/inject and config/assign make the same changes to a pod. A table of pods compares them with this package
// (controller/test/envtest/testdata/pods.yaml).
//
// It has no I/O. Documents that need no change keep their bytes: those without a workload, with a workload that does not ask for the sidecar, or with one that
// already has it. A changed document keeps its comments, its order and fields that Kubernetes does not know. It loses its blank lines, and aliases become
// copies.
package inject
