//go:build !unix

package hook

import "os/exec"

// group does nothing: no pod runs there, only people's commands do.
func group(*exec.Cmd) {}
