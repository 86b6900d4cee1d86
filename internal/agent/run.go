//go:build unix

package agent

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/idalloc/idalloc/internal/child"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/boottime"
	"github.com/idalloc/idalloc/pkg/identity"
)

// minFenceLead is the minimum time to kill a fenced command and see it gone.
const minFenceLead = 500 * time.Millisecond

// Command is the child process of Run.
type Command struct {
	// Processes starts it.
	Processes *child.Runner
	// Line is the command and its arguments. Run fills in {id} and the other placeholders of child.Fill.
	Line []string
	// KeepOnCountChange: do not restart the command if only the count changes.
	KeepOnCountChange bool
	// OnPartitions configures what happens to the command when its partitions change. Run uses it only with Options.Partitions.
	OnPartitions child.OnPartitions
	// StopTimeout is the time between SIGTERM and SIGKILL.
	StopTimeout time.Duration
}

// fenceLead returns how long before the end of fence-after the command must begin to stop.
func (c Command) fenceLead(fenceAfter time.Duration) time.Duration {
	return max(min(c.StopTimeout, fenceAfter/3), minFenceLead)
}

// fenceGrace returns how long a fenced command may take before it is killed. The rest of fenceLead is for killing it.
func (c Command) fenceGrace(fenceAfter time.Duration) time.Duration {
	lead := c.fenceLead(fenceAfter)
	return min(c.StopTimeout, lead-min(lead/4, time.Second))
}

// runWork is the command that Run runs.
type runWork struct {
	*agent
	follower *child.Follower
}

// before stops the command if the id or some partitions are gone, before anything else shows that. The command starts only in after, when the files and HTTP
// answers that it may read have the id and the partitions.
func (c *runWork) before(id identity.Identity) error {
	if id.Assigned() {
		c.follower.Restrict(id.Partitions.Owned())
	} else {
		c.follower.Publish(id)
	}
	return nil
}

func (c *runWork) after(id identity.Identity) {
	if id.Assigned() {
		c.follower.Publish(id)
	}
}

// Run claims an id and runs the command under it. It restarts the command after the id or the count has changed. It blocks until the command ends by itself or
// ctx ends, then until no process of the command is left and the slot is released or cannot be.
//
// It returns the command's exit code or an error: *child.StartError if the command could not be started, otherwise an error of the claim, the directory or the
// HTTP server. The release has two minutes, but only ten seconds after ctx has ended.
func Run(ctx context.Context, o Options, command Command) (code int, err error) {
	signalled := ctx
	// A signal stops the command first. Everything else continues until the command has ended.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	a, err := newAgent(o, cancel)
	if err != nil {
		return 0, err
	}
	defer a.close()
	c := &runWork{agent: a, follower: child.NewFollower(child.Options{
		Runner: command.Processes, Command: command.Line, Environ: os.Environ(), StopTimeout: command.StopTimeout,
		KeepOnCountChange: command.KeepOnCountChange, OnPartitions: command.onPartitions(o), Fenced: a.fenced, Log: o.Allocator.Log,
	})}
	a.work = c
	c.begin()
	to := &a.o.Allocator
	to.Stop, to.HandsOver, to.RestsAfterFailures = c.stop, true, o.Partitions
	// If this process is the container's first one, everything in the container ends with it. Other containers that read the directory continue.
	if os.Getpid() == 1 && a.dir == nil {
		to.Left = nil
	}
	lead := command.fenceLead(o.FenceAfter)
	if o.FenceAfter > 0 {
		to.FenceAfter, to.FenceLead = o.FenceAfter, lead
		to.Fenced = func(by time.Duration) {
			c.follower.Fence(by - (lead - command.fenceGrace(o.FenceAfter))) // the rest is for killing it
			c.showFenced()
		}
	}
	waitForSignals := forward(ctx, c.follower)
	defer waitForSignals()
	defer cancel(nil)
	stopServer, err := a.serve(ctx, a.server())
	if err != nil {
		return 0, err
	}
	// The allocator runs until the command has ended, even if ctx ends earlier, because it watches the time without contact.
	claiming, stopClaiming := context.WithCancel(context.WithoutCancel(ctx))
	claimed := make(chan struct{})
	go func() {
		defer close(claimed)
		if err := a.claim(claiming, func() error { return nil }); err != nil && claiming.Err() == nil {
			if to.Fenced != nil {
				to.Fenced(boottime.Now() + lead) // the loop that watches the deadline is gone
			}
			cancel(err)
		}
	}()
	if signalled.Err() != nil { // the signal may have come before forward listened
		c.follower.Signal(syscall.SIGTERM)
	}
	code, err = c.follower.Run(ctx)
	stopClaiming()
	<-claimed
	if alloc := a.alloc.Load(); alloc != nil {
		c.giveBack(signalled, alloc)
	}
	cancel(nil)
	stopServer()
	return code, err
}

// stop blocks until no command works on what must stop, and the readers of the files have had their time.
func (c *runWork) stop(ctx context.Context, stop allocator.Stop) error {
	begin := time.Now()
	if stop.All {
		if err := c.follower.Stopped(ctx); err != nil || c.dir == nil {
			return err
		}
	} else if err := c.follower.StoppedWorkOn(ctx, stop.Partitions); err != nil || c.dir == nil {
		return err
	}
	return c.readers.wait(ctx, stop, begin)
}

// onPartitions returns what the follower should do when the partitions change.
func (c Command) onPartitions(o Options) child.OnPartitions {
	if !o.Partitions {
		return child.IgnorePartitions
	}
	return max(c.OnPartitions, child.RestartOnPartitions)
}

// begin shows over HTTP that there is no id, because no command runs. The files may still have the id of the previous process. In strict mode begin withdraws
// it there, because nothing has watched its deadline since that process ended.
func (c *runWork) begin() {
	if c.o.FenceAfter > 0 {
		c.showFenced()
	}
	c.hub.Set(identity.Pending(c.o.Allocator.Pod, c.o.Allocator.Namespace))
}

// stopShowing withdraws what the files show, even if the previous process wrote it, and gives the readers their time.
func (c *runWork) stopShowing(ctx context.Context) error {
	if c.dir == nil {
		return nil
	}
	c.mu.Lock()
	if c.readers.mayRead() {
		c.show(c.shown.Without(identity.StateDraining))
	}
	c.mu.Unlock()
	return c.readers.wait(ctx, allocator.Stop{All: true}, time.Time{})
}

// giveBack releases the slot after any readers of the files have had their time. signalled ends when Kubernetes is about to kill the container.
func (c *runWork) giveBack(signalled context.Context, alloc *allocator.Allocator) {
	if err := c.stopShowing(context.WithoutCancel(signalled)); err != nil {
		c.o.Allocator.Log.Info("the slot was not released; it comes free when the pod is gone", "reason", err.Error())
		return
	}
	limited, cancel := releaseContext(signalled)
	defer cancel()
	c.release(limited, alloc, c.follower.EndedByItself())
}

// releaseContext returns the context of a release. It ends after two minutes, or ten seconds after signalled has ended. The caller must call cancel.
func releaseContext(signalled context.Context) (limited context.Context, cancel func()) {
	limited, end := context.WithCancelCause(context.WithoutCancel(signalled))
	timer := time.AfterFunc(calmTimeout, func() { end(context.DeadlineExceeded) })
	ignore := context.AfterFunc(signalled, func() { timer.Reset(releaseTimeout) })
	return limited, func() {
		ignore()
		timer.Stop()
		end(nil)
	}
}

// forward passes signals on to the command until ctx ends. The returned function blocks until forwarding has ended.
func forward(ctx context.Context, to *child.Follower) (wait func()) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, child.Signals()...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer signal.Stop(signals)
		for {
			select {
			case s := <-signals:
				if sig, ok := s.(syscall.Signal); ok {
					to.Signal(sig)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { <-done }
}
