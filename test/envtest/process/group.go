package process

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// ErrClosed is returned by Start after Close was called.
var ErrClosed = errors.New("process: group is closed")

// Group starts processes and owns them until Close.
type Group struct {
	guard  *guard
	starts chan start

	mu      sync.Mutex
	closed  bool
	members map[int]*Process
	running sync.WaitGroup
}

type start struct {
	cmd    *exec.Cmd
	result chan error
}

// NewGroup returns an empty group. The caller must Close it.
func NewGroup() (*Group, error) {
	guard, err := newGuard()
	if err != nil {
		return nil, fmt.Errorf("process: start the guard: %w", err)
	}
	g := &Group{guard: guard, starts: make(chan start), members: map[int]*Process{}}
	go g.fork()
	return g, nil
}

// fork starts the children, one after the other, on a thread of its own. The
// parent-death signal is sent when the forking *thread* ends, and Go ends idle
// threads as it likes; a locked one stays until this function returns.
func (g *Group) fork() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	for s := range g.starts {
		s.result <- s.cmd.Start()
	}
}

// Start starts cmd as the leader of a new process group. It overwrites
// cmd.SysProcAttr. The command's output should go to files: pipes that Go copies
// would be held open by grandchildren.
func (g *Group) Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	s := start{cmd: cmd, result: make(chan error, 1)}
	g.starts <- s
	if err := <-s.result; err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	p := &Process{cmd: cmd, pid: cmd.Process.Pid, done: make(chan struct{})}
	g.members[p.pid] = p
	g.guard.add(p.pid)
	g.running.Go(func() {
		p.wait(func() { g.guard.remove(p.pid) })
		g.mu.Lock()
		defer g.mu.Unlock()
		// A new process may have got this PID since it was reaped.
		if g.members[p.pid] == p {
			delete(g.members, p.pid)
		}
	})
	return p, nil
}

// Close kills every process with SIGKILL and returns when all are gone.
// Calling it again does nothing.
func (g *Group) Close() {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		g.running.Wait()
		return
	}
	g.closed = true
	for _, p := range g.members {
		p.Kill()
	}
	g.mu.Unlock()

	g.running.Wait()
	close(g.starts)
	g.guard.close()
}
