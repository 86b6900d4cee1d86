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

	"github.com/idalloc/idalloc/internal/boottime"
)

var (
	// ErrBusy is returned by Start while the process before is not gone.
	ErrBusy = errors.New("child: the command before still runs")
	// ErrClosed is returned by Start after Close.
	ErrClosed = errors.New("child: the runner is closed")
)

// sweepAgain is how often leftovers are looked for while some are left. SIGCHLD tells of all that
// matters sooner; this is for a process that could not be killed at first.
const sweepAgain = time.Second

// Command is what to start.
type Command struct {
	Args []string // the command and its arguments
	Env  []string // its whole environment, KEY=value
}

// Runner starts processes, one at a time, and reaps every child of this process except for those of
// package os/exec. There may be one Runner in a process.
type Runner struct {
	// terminal says that standard input is a terminal: then the command stays in this process's
	// group, which is the one that may read from the terminal.
	terminal bool
	starts   chan start
	sigchld  chan os.Signal
	closing  chan struct{}
	closed   chan struct{}
	current  *Process // of the loop's goroutine
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

// NewRunner makes this process adopt the orphans below it. The caller must Close the Runner.
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

// Terminal reports that the command shares this process's group, so that the terminal's signals
// reach it without help.
func (r *Runner) Terminal() bool { return r.terminal }

// Close ends the Runner, once. A process that still runs is killed, but not waited for.
func (r *Runner) Close() {
	signal.Stop(r.sigchld)
	close(r.closing)
	<-r.closed
}

// Start starts a command with this process's standard streams. The error is a *StartError, ErrBusy
// or ErrClosed.
func (r *Runner) Start(c Command) (*Process, error) {
	path, err := Look(c.Args[0])
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

// loop forks and reaps, on a thread of its own: the command's parent-death signal is sent when the
// forking thread ends, and Go ends idle threads as it likes.
func (r *Runner) loop() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	defer close(r.closed)
	for {
		var again <-chan time.Time
		if r.current != nil && r.current.ended() {
			again = time.After(sweepAgain)
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
		r.look()
	}
}

func (r *Runner) fork(s start) (*Process, error) {
	if r.current != nil {
		return nil, ErrBusy
	}
	attr := &syscall.ProcAttr{Env: s.command.Env, Files: []uintptr{0, 1, 2}, Sys: attributes(!r.terminal)}
	pid, err := syscall.ForkExec(s.path, s.command.Args, attr) //nolint:gosec // what the user named is what is to run
	if err != nil {
		return nil, startError(s.command.Args[0], err)
	}
	r.current = &Process{pid: pid, group: !r.terminal, done: make(chan struct{}), left: map[int]bool{}}
	return r.current, nil
}

// look takes in which processes have ended. Signals of one kind are not queued, so one may stand for many ends.
func (r *Runner) look() {
	p := r.current
	if p != nil {
		p.reap()
	}
	if none := tidy(p); none && p != nil && p.ended() {
		r.current = nil
		close(p.done)
	}
}

// Process is a command that was started. Its methods are safe for concurrent use.
type Process struct {
	pid   int
	group bool         // it leads a process group
	left  map[int]bool // what it left behind and was killed; of the loop's goroutine until done is closed
	done  chan struct{}

	mu sync.Mutex
	// reaped says that the command itself has ended: its pid may be another process's.
	reaped bool
	code   int
	killed bool
	killAt time.Duration
	rearm  chan struct{} // ends the goroutine that waits for killAt; nil without one
}

// Pid returns the command's process ID.
func (p *Process) Pid() int { return p.pid }

// Done returns a channel that is closed when the command has ended and nothing that it started is
// left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Code returns the command's exit code, 128+n when signal n ended it. Call it after Done.
func (p *Process) Code() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code
}

// Killed reports that the command did not end in time and was killed. Call it after Done.
func (p *Process) Killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// Leftovers returns how many processes the command left behind, which were killed. Call it after
// Done.
func (p *Process) Leftovers() int { return len(p.left) }

// Signal sends a signal to the command, unless it has ended.
func (p *Process) Signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(p.pid, sig) // it fails for a command that changed its user only; KillAt's end is the same
	}
}

// KillAt kills the command and its process group at a moment of package boottime, unless it has
// ended by then. Of several moments the earliest counts.
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

// Stop asks the command to end (SIGTERM), kills it after grace, and blocks until nothing of it is
// left. It returns an error if ctx ends first; the killing goes on.
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
	_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may have left its group
}

// disarm ends the goroutine of KillAt. The caller has the lock.
func (p *Process) disarm() {
	if p.rearm != nil {
		close(p.rearm)
		p.rearm = nil
	}
}

// ended reports that the command itself has ended.
func (p *Process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reaped
}

// reap takes in the command's end. The lock keeps its pid from being signalled when it is free again.
func (p *Process) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	var status syscall.WaitStatus
	pid, err := wait(p.pid, &status)
	if err == nil && pid == 0 {
		return // it runs
	}
	p.reaped, p.code = true, exitCode(status)
	if err != nil {
		p.code = codeUnknown // somebody else reaped it
	}
	p.disarm()
}

// codeUnknown stands for an exit code that this process was not told.
const codeUnknown = 255

// exitCode is what a shell makes of a status.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return signalled + int(status.Signal())
	}
	return status.ExitStatus()
}

// wait reaps one child if it has ended; otherwise the pid that it returns is 0.
func wait(pid int, status *syscall.WaitStatus) (int, error) {
	for {
		got, err := syscall.Wait4(pid, status, syscall.WNOHANG, nil)
		if !errors.Is(err, syscall.EINTR) {
			return got, err
		}
	}
}
