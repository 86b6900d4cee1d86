// Package e2e runs the examples of config/ on a real cluster with real containers. hack/e2e builds the
// image and starts it; it is excluded from "go test ./..." by the build tag e2e. Without the tag only
// the manifests are checked.
//
// It needs KUBECONFIG, kubectl, and E2E_IMAGE: an image that the nodes have already, with /idalloc,
// /fileworker and /worker. The programs (test/worker) append what they see to a host directory below
// E2E_PROBE_ROOT (default: the directory for temporary files), which this process must see too: the
// cluster has one node, and it is this machine, as is the second one that a spec adds and loses. After every
// spec the logs are searched for two pods that showed one id, or worked on one partition, at the same moment.
//
// The suite installs config/policy first, and all specs run with it in force. It removes it at the end, unless the
// cluster had one before.
//
// Specs with the label main are the main flows; -ginkgo.label-filter=main runs no others.
//
// hack/chaos starts one more spec, with -chaos.duration: for that long, faults that -chaos.seed draws hit
// five workloads, the network before the API server, and the control plane; then all has to settle.
// CHAOS_TOXIPROXY is toxiproxy's server. The logs and the page of the run go into -chaos.run.
package e2e
