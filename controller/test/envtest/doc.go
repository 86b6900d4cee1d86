// Package envtest runs the controller on the local control plane. There is no node: what a kubelet does, kubelet does.
package envtest
