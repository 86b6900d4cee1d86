//go:build !failpoints

package failpoint

import "k8s.io/client-go/rest"

// Wrap does nothing in a program that is released.
func Wrap(*rest.Config) {}
