//go:build unix

package child

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/boottime"
)

var (
	// ErrBusy means that the previous command is not gone yet.
	ErrBusy = errors.New("child: the command before still runs")
	// ErrClosed means that the Runner is closed.
	ErrClosed = errors.New("child: the runner is closed")
)

// searchAgain is the time between two searches for leftovers. Usually SIGCHLD starts a search sooner. The timer is for a process that could not be killed at
// first.
const searchAgain = time.Second

// Command is a command to start.
type Command struct {
	Args []string // the command and its arguments
	Env  []string // its whole environment, KEY=value
}

// Runner starts processes, one at a time. It reaps every child of this process except those of package os/exec. Use only one Runner per process.
type Runner struct {
	// terminal is true if standard input is a terminal. Then the command stays in this process's group, because only that group may read from the terminal.
	terminal bool
	starts   chan start
	sigchld  chan os.Signal
	closing  chan struct{}
	closed   chan struct{}
	current  *Process // used only by the loop's goroutine
}

type start struct {
	path    string
	command Command
	result  chan<- started
}

type started struct {
	process *Process
	err     error
}

// NewRunner returns a Runner and makes this process adopt the orphans below it. The caller must call Close.
func NewRunner() (*Runner, error) {
	if err := adopt(); err != nil {
		return nil, err
	}
	r := &Runner{
		terminal: isTerminal(syscall.Stdin), starts: make(chan start), sigchld: make(chan os.Signal, 1),
		closing: make(chan struct{}), closed: make(chan struct{}),
	}
	signal.Notify(r.sigchld, syscall.SIGCHLD)
	go r.loop()
	return r, nil
}

// Terminal reports whether the command shares this process's group, so that the terminal's signals reach it directly.
func (r *Runner) Terminal() bool { return r.terminal }

// Close ends the Runner. It kills a process that still runs, but does not wait for it to end. Call it once.
func (r *Runner) Close() {
	signal.Stop(r.sigchld)
	close(r.closing)
	<-r.closed
}

// Start starts a command with this process's standard streams. It does not wait for the command to end. The error is a *StartError, ErrBusy or ErrClosed.
func (r *Runner) Start(c Command) (*Process, error) {
	path, err := Find(c.Args[0])
	if err != nil {
		return nil, err
	}
	result := make(chan started, 1)
	select {
	case r.starts <- start{path: path, command: c, result: result}:
	case <-r.closed:
		return nil, ErrClosed
	}
	s := <-result
	return s.process, s.err
}

// loop forks and reaps. It has its own thread, because the kernel sends the command's parent-death signal when the thread that forked it ends, and Go may end
// an unused thread at any time.
func (r *Runner) loop() {
	runtime.LockOSThread() // never unlocked, so the thread ends together with the goroutine
	defer close(r.closed)
	for {
		var again <-chan time.Time
		if r.current != nil && r.current.ended() {
			again = time.After(searchAgain)
		}
		select {
		case s := <-r.starts:
			p, err := r.fork(s)
			s.result <- started{process: p, err: err}
		case <-r.sigchld:
		case <-again:
		case <-r.closing:
			if r.current != nil {
				r.current.kill()
			}
			return
		}
		r.reapAll()
	}
}

func (r *Runner) fork(s start) (*Process, error) {
	if r.current != nil {
		return nil, ErrBusy
	}
	attr := &syscall.ProcAttr{Env: s.command.Env, Files: []uintptr{0, 1, 2}, Sys: attributes(!r.terminal)}
	pid, err := syscall.ForkExec(s.path, s.command.Args, attr) //nolint:gosec // the user names the command to run
	if err != nil {
		return nil, startError(s.command.Args[0], err)
	}
	r.current = &Process{pid: pid, group: !r.terminal, done: make(chan struct{}), left: map[int]bool{}}
	return r.current, nil
}

// reapAll reaps all processes that have ended. Signals of one kind are not queued, so one SIGCHLD may stand for many ends.
func (r *Runner) reapAll() {
	p := r.current
	if p != nil {
		p.reap()
	}
	if none := clearLeftovers(p); none && p != nil && p.ended() {
		r.current = nil
		close(p.done)
	}
}

// Process is a started command. Its methods are safe for concurrent use.
type Process struct {
	pid   int
	group bool // it leads a process group
	// left holds the pids of the leftovers that were killed. Only the loop's goroutine uses it until done is closed.
	left map[int]bool
	done chan struct{}

	mu sync.Mutex
	// reaped: the command itself has ended, so another process may have its pid.
	reaped bool
	code   int
	killed bool
	killAt time.Duration
	rearm  chan struct{} // closing it ends the goroutine that waits for killAt; nil if there is none
}

// Pid returns the command's process ID.
func (p *Process) Pid() int { return p.pid }

// Done returns a channel that is closed when the command has ended and none of the processes that it started are left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Code returns the command's exit code, or 128+n if signal n ended it. Call it after Done is closed.
func (p *Process) Code() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code
}

// Killed reports whether the command did not end in time and was killed. Call it after Done is closed.
func (p *Process) Killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// Leftovers returns the number of processes that the command left behind and that were killed. Call it after Done is closed.
func (p *Process) Leftovers() int { return len(p.left) }

// Signal sends a signal to the command, unless it has ended.
func (p *Process) Signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(p.pid, sig) // fails only if the command has changed its user, and then there is nothing to do
	}
}

// KillAt makes sure that the command and its process group are killed at the given time of package boottime, unless the command has ended before. It does not
// block. After several calls the earliest time counts.
func (p *Process) KillAt(at time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped || (p.rearm != nil && p.killAt <= at) {
		return
	}
	p.disarm()
	rearm := make(chan struct{})
	p.killAt, p.rearm = at, rearm
	go func() {
		boottime.Wait(at, rearm)
		select {
		case <-rearm:
		default:
			p.kill()
		}
	}()
}

// Stop sends SIGTERM to the command, kills it after grace, and blocks until none of its processes are left. If ctx ends earlier, it returns the cause of ctx;
// the command is still killed.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.Signal(syscall.SIGTERM)
	p.KillAt(boottime.Now() + grace)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	p.killed = true
	if p.group {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	_ = syscall.Kill(p.pid, syscall.SIGKILL) // the command may have left its group
}

// disarm ends the goroutine of KillAt. The caller must hold the lock.
func (p *Process) disarm() {
	if p.rearm != nil {
		close(p.rearm)
		p.rearm = nil
	}
}

// ended reports whether the command itself has ended.
func (p *Process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reaped
}

// reap reaps the command if it has ended. It holds the lock, so that no signal is sent to the pid once it is free again.
func (p *Process) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	var status syscall.WaitStatus
	pid, err := wait(p.pid, &status)
	if err == nil && pid == 0 {
		return // the command is still running
	}
	p.reaped, p.code = true, exitCode(status)
	if err != nil {
		p.code = codeUnknown // another process reaped it
	}
	p.disarm()
}

// codeUnknown stands for an unknown exit code.
const codeUnknown = 255

// exitCode returns the exit code that a shell would return for this status.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return signalled + int(status.Signal())
	}
	return status.ExitStatus()
}

// wait reaps one child if it has ended. If not, it returns 0.
func wait(pid int, status *syscall.WaitStatus) (int, error) {
	for {
		got, err := syscall.Wait4(pid, status, syscall.WNOHANG, nil)
		if !errors.Is(err, syscall.EINTR) {
			return got, err
		}
	}
}
