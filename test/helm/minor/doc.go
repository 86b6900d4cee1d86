// Package minor runs the chart, the page of the controller, agents with partitions, strict mode, check and verify on the versions of
// Kubernetes in hack/controlplane/minors. hack/minors runs it on each.
package minor
