//go:build unix

package child

import (
	"cmp"
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/boottime"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Options configures a Follower.
type Options struct {
	Runner *Runner
	// Command is the command and its arguments, before Fill.
	Command []string
	// Environ is the command's environment without the identity.
	Environ []string
	// KeepOnCountChange: do not restart the command if only the count changes.
	KeepOnCountChange bool
	// OnPartitions configures what happens to the command when its partitions change.
	OnPartitions OnPartitions
	// StopTimeout is the time between SIGTERM and SIGKILL.
	StopTimeout time.Duration
	// Fenced reports whether the deadline of the last published identity has passed. The Follower calls it before each
	// start. It may be nil, and it must not block.
	Fenced func() bool
	Log    logr.Logger
}

// Follower runs the command while there is an identity with an id. Its methods are safe for concurrent use.
type Follower struct {
	o Options
	// changed gets a value after each change. A buffer of one is enough, because its reader checks the whole state.
	changed chan struct{}

	mu sync.Mutex
	// want is the newest identity.
	want identity.Identity
	// revoked counts how often the id or some partitions were withdrawn. A command that was started before the latest withdrawal must stop, even if the same id
	// comes back.
	revoked int
	// fenced: ignore identities with an id until one without an id is published. An identity published at the moment of Fence may be older than the fence.
	fenced bool
	// killBy is the time by which a command without an id must be dead. If it is 0, StopTimeout decides.
	killBy time.Duration
	// ending is the signal that ends Run, 0 if there was none.
	ending syscall.Signal
	// works holds the partitions on which the command may be working. It is empty while no command runs.
	works placement.Set
	// begun is the value of revoked when the command was started.
	begun int
	// restricted: start no command before the next Publish, because the files may still name partitions that were withdrawn.
	restricted bool
	// noCommand is closed while no command runs.
	noCommand chan struct{}
	// process is the running command. It is nil while the command is being started.
	process *Process
	// askedToEnd: the process got a signal that asks it to end. terminated: that signal was SIGTERM.
	askedToEnd, terminated bool
	// endedByItself: the command ended without being asked to, or could not be started.
	endedByItself bool
}

// task is one run of the command.
type task struct {
	id      identity.Identity
	revoked int
}

// NewFollower returns a Follower without an identity.
func NewFollower(o Options) *Follower {
	noCommand := make(chan struct{})
	close(noCommand)
	return &Follower{o: o, changed: make(chan struct{}, 1), noCommand: noCommand}
}

// Publish sets the newest identity. It does not block. After it returns for an identity without an id, the Follower starts no command until the next identity
// with an id. A command may still be running then: Stopped waits for its end.
func (f *Follower) Publish(id identity.Identity) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !id.Assigned():
		f.fenced, f.restricted = false, false
		f.revoked++
		f.want = id
	case !f.fenced:
		f.restricted = false
		f.change(id)
	}
	f.wake()
}

// change makes id, which is assigned, the newest identity. The caller must hold the lock.
func (f *Follower) change(id identity.Identity) {
	before := f.want.Partitions
	f.want = id
	if f.o.OnPartitions == IgnorePartitions || id.Partitions == before {
		return
	}
	if f.runs() {
		f.works = f.works.Union(id.Partitions.Owned()) // the command may read them from the files
	}
	switch {
	case !keeps(id.Partitions, before):
		f.revoked++
	case f.runs() && f.o.OnPartitions == SignalOnPartitions && !id.Partitions.Owned().Equal(before.Owned()):
		f.hangUp()
	}
}

// Fence withdraws the id and makes sure that the command is dead by the given time of package boottime. If that time has passed, it kills the command at once.
// It does not block.
func (f *Follower) Fence(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.want.Assigned() {
		f.fenced = true
		f.revoked++
		f.want = f.want.Without(identity.StateFenced)
	}
	f.killBy = max(by, 1) // 0 would mean that there is no such time
	f.wake()
}

// Stopped blocks until neither the command nor anything that it started runs. If ctx ends earlier, it returns the cause of ctx. It is for
// allocator.Options.Stop.
func (f *Follower) Stopped(ctx context.Context) error {
	f.mu.Lock()
	noCommand := f.noCommand
	f.mu.Unlock()
	select {
	case <-noCommand:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runs reports whether a command is running or being started. The caller must hold the lock.
func (f *Follower) runs() bool {
	select {
	case <-f.noCommand:
		return false
	default:
		return true
	}
}

// Signal passes a signal on to the command. It does not wait. After SIGTERM and SIGINT, Run returns once the command has ended.
func (f *Follower) Signal(sig syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ends := sig == syscall.SIGTERM || sig == syscall.SIGINT
	if f.process != nil {
		f.pass(sig)
		f.askedToEnd = f.askedToEnd || ends
	}
	if ends {
		if f.ending == 0 {
			f.ending = sig
		}
		f.wake()
	}
}

// pass sends a signal to the process, unless the process already has it from the terminal, or because it is being stopped. Many programs end at once, without
// cleaning up, at a second SIGTERM. The caller must hold the lock.
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

// wake makes Run check the state again. The caller must hold the lock.
func (f *Follower) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Run runs the command under one identity after another. It blocks until the command ends by itself, until it has ended after a signal, or until ctx ends. When
// Run returns, no process of the command is left, and none will be started.
//
// It returns the command's exit code, or 128+n if signal n came while no command ran. The error is a *StartError or the cause of ctx.
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
			f.endedByItself = true
			f.finish()
			return 0, err
		}
		asked := f.attend(ctx, t, p)
		f.finish()
		switch {
		case !asked:
			f.endedByItself = f.mustStop(ctx, t) == ""
			// Log: the command ended by itself; idalloc gives the slot back and exits with its `code`.
			// Do: read the command's own log.
			f.o.Log.Info("command ended", "id", t.id.ID, "pid", p.Pid(), "code", p.Code(), "leftovers", p.Leftovers())
			return p.Code(), nil
		case ctx.Err() == nil && f.endedBy() == 0:
			f.logStopped(t, p)
		default:
			f.logStopped(t, p)
			return p.Code(), context.Cause(ctx)
		}
	}
}

// EndedByItself reports whether the command ended without being asked to, or could not be started. Call it after Run.
func (f *Follower) EndedByItself() bool { return f.endedByItself }

func (f *Follower) logStopped(t task, p *Process) {
	// Log: nothing of the command is left. `code` is its exit code; `killed` is true if it took longer than `--stop-timeout`; `leftovers` is the number
	// of processes that it had left behind, which idalloc killed.
	// Do: if `killed`, set a longer `--stop-timeout`, or use a command that ends on SIGTERM (a shell has to `exec` its program).
	f.o.Log.Info("command stopped", "id", t.id.ID, "pid", p.Pid(), "code", p.Code(), "killed", p.Killed(), "leftovers", p.Leftovers())
}

// begin marks the command as running, if there is an id. ok is false otherwise.
func (f *Follower) begin(ctx context.Context) (t task, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.want.Assigned() || f.restricted || f.idle() || f.ending != 0 || ctx.Err() != nil {
		return task{}, false
	}
	if f.o.Fenced != nil && f.o.Fenced() {
		return task{}, false // a call of Fence or Publish will follow
	}
	f.noCommand, f.works, f.begun = make(chan struct{}), f.want.Partitions.Owned(), f.revoked
	f.killBy, f.askedToEnd, f.terminated = 0, false, false
	return task{id: f.want, revoked: f.revoked}, true
}

// start starts the command without holding the lock, because reading the program's file may take long.
func (f *Follower) start(t task) (*Process, error) {
	p, err := f.o.Runner.Start(Command{Args: Fill(f.o.Command, t.id), Env: environment(f.o.Environ, t.id)})
	if err != nil {
		return nil, err
	}
	log := f.o.Log
	if f.o.OnPartitions != IgnorePartitions {
		log = log.WithValues("partitions", t.id.Partitions.Owned().String())
	}
	// Log: `run` started the command under `id`, `count` and `token`; `pid` is its process.
	log.Info("command started", "id", t.id.ID, "count", t.id.Count, "token", t.id.Token, "pid", p.Pid())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.process = p
	return p, nil
}

// finish records that no process of the command is left.
func (f *Follower) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.process, f.works = nil, placement.Set{}
	close(f.noCommand)
}

// endedBy returns the signal that ends Run, or 0.
func (f *Follower) endedBy() syscall.Signal {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ending
}

// attend blocks until the command has ended. It stops the command when the command must stop. asked is true if it did that.
func (f *Follower) attend(ctx context.Context, t task, p *Process) (asked bool) {
	for {
		if reason := f.mustStop(ctx, t); reason != "" {
			if !asked {
				// Log: the command got SIGTERM; `reason` is the cause: the count changed, there is no id, or a signal.
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

// stop asks the process to end and sets the time at which it is killed. With again, it only moves that time.
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
	if !f.askedToEnd { // a signal sent while the command was starting did not reach it
		f.askedToEnd = true
		f.pass(cmp.Or(f.ending, syscall.SIGTERM))
	}
}

// mustStop explains why the command must stop. The reason is empty if the command may continue.
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
	case f.revoked != t.revoked || f.want.ID != t.id.ID || f.want.Token != t.id.Token:
		if f.o.OnPartitions != IgnorePartitions && f.want.ID == t.id.ID && f.want.Token == t.id.Token {
			return "the id or some of its partitions were revoked"
		}
		return "the id was revoked"
	case f.want.Count != t.id.Count && !f.o.KeepOnCountChange:
		return "the count changed"
	case f.o.OnPartitions == RestartOnPartitions && !f.want.Partitions.Owned().Equal(t.id.Partitions.Owned()):
		return "the partitions changed"
	}
	return ""
}
