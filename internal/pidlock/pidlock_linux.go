package pidlock

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Hold makes this process the only one of its pod that claims ids, until it calls release or ends. It does not block. It returns an error if another process of
// the pod already does.
func Hold(pod, uid string) (release func(), err error) {
	// An abstract name has no file. With hostNetwork all pods of the node share the names, so the name contains the UID.
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@idalloc/" + uid})
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("another process of pod %s claims ids already, and two would act under one id: "+
			"run idalloc in one container of the pod, or link it into one program, and not both", pod)
	}
	if err != nil {
		return func() {}, nil //nolint:nilerr // a sandbox without such names is no reason to give no id
	}
	return func() { _ = socket.Close() }, nil
}
