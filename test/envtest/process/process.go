package process

import (
	"errors"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a running or ended child.
type Process struct {
	cmd  *exec.Cmd
	pid  int
	done chan struct{}

	mu     sync.Mutex
	reaped bool
}

// Pid returns the process ID, which is also the ID of the process group.
func (p *Process) Pid() int { return p.pid }

// Done is closed when the process and its group are gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode returns the exit code, 128 + n for a process that signal n ended.
// It may be called only after Done.
func (p *Process) ExitCode() int {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal to the leader alone, as a container runtime does. It
// does nothing when the process has ended.
func (p *Process) Signal(signal syscall.Signal) { p.send(p.pid, signal) }

// Kill sends SIGKILL to the whole group. It does nothing when it has ended.
func (p *Process) Kill() { p.send(-p.pid, syscall.SIGKILL) }

// send holds the lock that wait takes for reaping: until a process is reaped,
// the kernel cannot give its ID to another one.
func (p *Process) send(target int, signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(target, signal)
	}
}

// wait returns when the leader has ended and its group is killed. forget is
// called while the group's ID still belongs to it.
func (p *Process) wait(forget func()) {
	var err error
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	p.mu.Lock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	forget()
	_ = p.cmd.Wait() // the exit status is read from ProcessState
	p.reaped = true
	p.mu.Unlock()
	close(p.done)
}
