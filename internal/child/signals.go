//go:build unix

package child

import (
	"os"
	"syscall"
)

// Signals returns the signals to pass on to the command. SIGCHLD, SIGURG and SIGPIPE are not among them, because they concern this process, and neither are the
// signals of job control.
func Signals() []os.Signal {
	return append([]os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGWINCH, syscall.SIGALRM, syscall.SIGVTALRM, syscall.SIGIO,
	}, realtime()...)
}
