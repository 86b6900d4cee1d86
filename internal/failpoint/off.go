//go:build !failpoints

package failpoint

import "k8s.io/client-go/rest"

// Wrap does nothing in a released program.
func Wrap(*rest.Config) {}
