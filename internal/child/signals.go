//go:build unix

package child

import (
	"os"
	"syscall"
)

// Signals returns what is passed on to the command. Not among them are SIGCHLD, SIGURG and SIGPIPE,
// which are about this process, and those of job control.
func Signals() []os.Signal {
	return append([]os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGWINCH, syscall.SIGALRM, syscall.SIGVTALRM, syscall.SIGIO,
	}, realtime()...)
}
