// Package controlplane runs a real Kubernetes control plane on this machine:
// etcd, kube-apiserver and kube-controller-manager as child processes on
// loopback ports, without root and without containers. Deployments,
// StatefulSets and Jobs really create, roll and delete pods on it. There is no
// scheduler and no kubelet; package node plays both.
//
// The programs come from the directory in KUBEBUILDER_ASSETS when it holds all
// three, otherwise from hack/controlplane/build, which compiles them once.
//
// Authentication is real: users are client certificates signed by the control
// plane's CA, service accounts are tokens that the API server issued. RBAC is
// on, so a test can show what a missing permission does.
//
// The node lifecycle controller runs with a grace period of a day, because
// no kubelet sends heartbeats here. Everything else that a controller does is as in
// a cluster.
//
// The package works on Linux only, like package process.
package controlplane
