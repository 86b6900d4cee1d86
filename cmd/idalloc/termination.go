package main

import (
	"os"

	"github.com/spf13/cobra"
)

const (
	// terminationLog is the default terminationMessagePath of a container, from which the kubelet reads the container's last message.
	terminationLog = "/dev/termination-log"
	// maxTermination is the number of bytes that the kubelet reads.
	maxTermination = 4096
)

// inContainer marks the commands that containers run as their program. "idalloc get" in a shell is not one of them.
const inContainer = "idalloc.dev/in-container"

func marked() map[string]string { return map[string]string{inContainer: "yes"} }

// leaveWord writes the reason for the command's failure to the termination log; kubectl describe shows it. It does not create the file, because no kubelet
// reads a file that it has not created. It ignores errors.
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
