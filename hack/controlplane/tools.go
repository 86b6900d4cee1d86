//go:build tools

// Package controlplane pins the programs of the local control plane. It is a
// module of its own, so that Kubernetes' own dependencies stay out of the main
// module's go.mod.
package controlplane

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
