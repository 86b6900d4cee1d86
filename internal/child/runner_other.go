//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

// adopt does nothing: only Linux lets a process adopt orphans.
func adopt() error { return nil }

func attributes(group bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: group} }

// isTerminal returns false, so that the command gets its own process group and can be killed with it.
func isTerminal(int) bool { return false }

// clearLeftovers kills the processes that the command left in its process group. It does not find those that moved to another group.
func clearLeftovers(p *Process) (none bool) {
	if p != nil && p.ended() && p.group {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	return true
}

func realtime() []os.Signal { return nil }
