// Package policy holds the suite of config/policy: what the admission policy refuses to the token of a pod, that idalloc
// works under it, and that it concerns nobody else. The policy, its binding and the Role are those of config/, and the
// tokens are bound to their pods as those of a kubelet are.
package policy
