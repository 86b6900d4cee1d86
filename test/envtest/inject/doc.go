// Package inject holds the suite of config/inject: that the policy gives a pod the same sidecar that kubectl idalloc inject gives its
// template, that both refuse the same, and that the pods can do what idalloc does. config/policy is in force beside it.
package inject
