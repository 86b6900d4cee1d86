package main

import (
	"os"

	"github.com/spf13/cobra"
)

const (
	// terminationLog is where kubelets look for a container's last words, unless its terminationMessagePath is another.
	terminationLog = "/dev/termination-log"
	// maxTermination is what they take of them, in bytes.
	maxTermination = 4096
)

// inContainer marks the commands that are a container's own: "idalloc get" in somebody's shell is not.
const inContainer = "idalloc.dev/in-container"

func marked() map[string]string { return map[string]string{inContainer: "yes"} }

// leaveWord writes why the command failed to where kubectl describe shows it. It makes no file: where there is none,
// nobody looks for one. Not to be able to is no error of the command's.
func leaveWord(path string, cmd *cobra.Command, err error) {
	if cmd == nil || cmd.Annotations[inContainer] == "" || err == nil || err.Error() == "" {
		return
	}
	f, oerr := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0) //nolint:gosec // the path is a constant
	if oerr != nil {
		return
	}
	text := "error: " + err.Error()
	_, _ = f.WriteString(text[:min(len(text), maxTermination)])
	_ = f.Close()
}
