//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

// adopt does nothing: only Linux lets a process adopt orphans.
func adopt() error { return nil }

func attributes(group bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: group} }

// isTerminal says no: the command is then killed with its group.
func isTerminal(int) bool { return false }

// tidy kills what the command left in its process group. What moved to another one is not found.
func tidy(p *Process) (none bool) {
	if p != nil && p.ended() && p.group {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	return true
}

func realtime() []os.Signal { return nil }
