//go:build unix

package child

import (
	"cmp"
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/internal/boottime"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Options configure a Follower.
type Options struct {
	Runner *Runner
	// Command is the command and its arguments, before Fill.
	Command []string
	// Environ is the command's environment without the identity.
	Environ []string
	// KeepOnCountChange lets the command run on when only the count changed.
	KeepOnCountChange bool
	// StopTimeout is the time between SIGTERM and SIGKILL.
	StopTimeout time.Duration
	// Fenced says by the clock that the identity that was published last is not in force any more; it
	// is asked before each start. It may be nil and must not block.
	Fenced func() bool
	Log    logr.Logger
}

// Follower runs the command while there is an identity to run it under. Its methods are safe for
// concurrent use.
type Follower struct {
	o Options
	// changed has room for one: whoever reads it looks at everything.
	changed chan struct{}

	mu sync.Mutex
	// want is the newest identity.
	want identity.Identity
	// revoked counts how often there was no id: a command that was started before has to stop, even
	// if the same id came back.
	revoked int
	// fenced: identities do not count until one without an id was published. What is published at the
	// moment of Fence may be older than it.
	fenced bool
	// killBy is the moment by which a command without an id is dead; zero: StopTimeout tells.
	killBy time.Duration
	// ending is the signal that ends Run, zero without one.
	ending syscall.Signal
	// idle is closed while no command runs.
	idle chan struct{}
	// process is what runs; nil also while it is being started.
	process *Process
	// told says that the process got a signal that asks it to end; terminated, that it got SIGTERM.
	told, terminated bool
	// byItself says that the command ended although nobody told it to, or could not be started.
	byItself bool
}

// task is a command that may be started.
type task struct {
	id      identity.Identity
	revoked int
}

// NewFollower returns a Follower that has no identity yet.
func NewFollower(o Options) *Follower {
	idle := make(chan struct{})
	close(idle)
	return &Follower{o: o, changed: make(chan struct{}, 1), idle: idle}
}

// Publish tells the newest identity. It does not block. When it has returned for one without an id,
// no command is started any more until the next one with an id; Stopped says when none runs.
func (f *Follower) Publish(id identity.Identity) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !id.Assigned():
		f.fenced = false
		f.revoked++
		f.want = id
	case !f.fenced:
		f.want = id
	}
	f.wake()
}

// Fence takes the id away and has the command dead at a moment of package boottime: at once if that
// is past. It does not block.
func (f *Follower) Fence(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.want.Assigned() {
		f.fenced = true
		f.revoked++
		f.want = f.want.Without(identity.StateFenced)
	}
	f.killBy = max(by, 1) // zero is none
	f.wake()
}

// Stopped blocks until no command runs, with all that it started. It is for allocator.Options.
func (f *Follower) Stopped(ctx context.Context) error {
	f.mu.Lock()
	idle := f.idle
	f.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Signal passes a signal on to the command. SIGTERM and SIGINT also end Run, when the command has
// ended.
func (f *Follower) Signal(sig syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ends := sig == syscall.SIGTERM || sig == syscall.SIGINT
	if f.process != nil {
		f.pass(sig)
		f.told = f.told || ends
	}
	if ends {
		if f.ending == 0 {
			f.ending = sig
		}
		f.wake()
	}
}

// pass signals the process, unless it got that signal already: from the terminal, or because it is
// being stopped anyway; many programs take a second SIGTERM as an order to drop everything. The
// caller has the lock.
func (f *Follower) pass(sig syscall.Signal) {
	switch sig {
	case syscall.SIGTERM:
		if f.terminated {
			return
		}
		f.terminated = true
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH:
		if f.o.Runner.Terminal() {
			return
		}
	default:
	}
	f.process.Signal(sig)
}

// wake lets Run look again. The caller has the lock.
func (f *Follower) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Run runs the command under one identity after the other until the command ends by itself, a signal
// ended it, or ctx ends. When it returns, nothing of the command is left and none will be started. It
// returns the command's exit code, 128+n for a signal that came while no command ran; or an error:
// a *StartError, or context.Cause(ctx).
func (f *Follower) Run(ctx context.Context) (code int, err error) {
	defer context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.wake()
	})()
	for {
		t, ok := f.begin(ctx)
		if !ok {
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			if sig := f.endedBy(); sig != 0 {
				return signalled + int(sig), nil
			}
			<-f.changed
			continue
		}
		p, err := f.start(t)
		if err != nil {
			f.byItself = true
			f.finish()
			return 0, err
		}
		asked := f.attend(ctx, t, p)
		f.finish()
		switch {
		case !asked:
			f.byItself = f.mustStop(ctx, t) == ""
			f.o.Log.Info("command ended", "id", t.id.ID, "pid", p.Pid(), "code", p.Code(), "leftovers", p.Leftovers())
			return p.Code(), nil
		case ctx.Err() == nil && f.endedBy() == 0:
			f.stopped(t, p)
		default:
			f.stopped(t, p)
			return p.Code(), context.Cause(ctx)
		}
	}
}

// EndedByItself reports, after Run returned, whether the command ended although nobody told it to, or could not be started.
func (f *Follower) EndedByItself() bool { return f.byItself }

func (f *Follower) stopped(t task, p *Process) {
	f.o.Log.Info("command stopped", "id", t.id.ID, "pid", p.Pid(), "code", p.Code(), "killed", p.Killed(), "leftovers", p.Leftovers())
}

// begin marks the command as running, if there is an identity to run it under.
func (f *Follower) begin(ctx context.Context) (task, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.want.Assigned() || f.ending != 0 || ctx.Err() != nil {
		return task{}, false
	}
	if f.o.Fenced != nil && f.o.Fenced() {
		return task{}, false // Fence or Publish is about to say so
	}
	f.idle = make(chan struct{})
	f.killBy, f.told, f.terminated = 0, false, false
	return task{id: f.want, revoked: f.revoked}, true
}

// start starts the command. The lock is not held: it may take as long as the program's file takes to
// be read.
func (f *Follower) start(t task) (*Process, error) {
	p, err := f.o.Runner.Start(Command{Args: Fill(f.o.Command, t.id), Env: environment(f.o.Environ, t.id)})
	if err != nil {
		return nil, err
	}
	f.o.Log.Info("command started", "id", t.id.ID, "count", t.id.Count, "epoch", t.id.Epoch, "pid", p.Pid())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.process = p
	return p, nil
}

// finish marks that nothing of the command is left.
func (f *Follower) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.process = nil
	close(f.idle)
}

// endedBy returns the signal that ends Run, zero without one.
func (f *Follower) endedBy() syscall.Signal {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ending
}

// attend waits for the command's end, and asks for it when the command may not run on. asked says
// that it did.
func (f *Follower) attend(ctx context.Context, t task, p *Process) (asked bool) {
	for {
		if reason := f.mustStop(ctx, t); reason != "" {
			if !asked {
				f.o.Log.Info("stopping the command", "id", t.id.ID, "pid", p.Pid(), "reason", reason)
			}
			f.stop(asked)
			asked = true
		}
		select {
		case <-p.Done():
			return asked
		case <-f.changed:
		}
	}
}

// stop asks the process to end, once, and has it killed in time.
func (f *Follower) stop(again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.killBy != 0 {
		f.process.KillAt(f.killBy)
	}
	if again {
		return
	}
	f.process.KillAt(boottime.Now() + f.o.StopTimeout)
	if !f.told { // a signal that came while it was being started did not reach it
		f.told = true
		f.pass(cmp.Or(f.ending, syscall.SIGTERM))
	}
}

// mustStop says why the command may not run on, empty if it may.
func (f *Follower) mustStop(ctx context.Context, t task) (reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.ending != 0:
		return "signal " + f.ending.String()
	case ctx.Err() != nil:
		return context.Cause(ctx).Error()
	case !f.want.Assigned():
		return "the state is " + string(f.want.State)
	case f.revoked != t.revoked || f.want.ID != t.id.ID || f.want.Epoch != t.id.Epoch:
		return "the id was revoked"
	case f.want.Count != t.id.Count && !f.o.KeepOnCountChange:
		return "the count changed"
	}
	return ""
}
