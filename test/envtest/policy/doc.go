// Package policy holds the suite of config/policy: what the admission policies refuse to the token of a pod, that idalloc
// works under them, and that they concern no other account. The policies, their bindings and the Roles are those of config/, and the
// tokens are bound to their pods as those of a kubelet are.
package policy
