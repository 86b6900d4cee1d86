//go:build unix

package agent

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/idalloc/idalloc/internal/boottime"
	"github.com/idalloc/idalloc/internal/child"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// minFenceLead is the least time in which a command that is fenced is killed and gone.
const minFenceLead = 500 * time.Millisecond

// Command is the work of Run: a child process.
type Command struct {
	Processes *child.Runner
	// Line is the command with its arguments, in which {id} and the like are filled in.
	Line []string
	// KeepOnCountChange leaves it running when the count alone changes.
	KeepOnCountChange bool
	// StopTimeout is the time between SIGTERM and SIGKILL.
	StopTimeout time.Duration
}

// fenceLead is how long before fence-after the command is stopped.
func (c Command) fenceLead(fenceAfter time.Duration) time.Duration {
	return max(min(c.StopTimeout, fenceAfter/3), minFenceLead)
}

// fenceGrace is how long a fenced command has until it is killed; the rest of fenceLead is for the
// killing.
func (c Command) fenceGrace(fenceAfter time.Duration) time.Duration {
	lead := c.fenceLead(fenceAfter)
	return min(c.StopTimeout, lead-min(lead/4, time.Second))
}

// above is a command that this process runs.
type above struct {
	*agent
	follower *child.Follower
}

// The command is told of an id last, when the files and answers that it may read have it, and first that there is none.
func (c *above) before(id identity.Identity) error {
	if !id.Assigned() {
		c.follower.Publish(id)
	}
	return nil
}

func (c *above) after(id identity.Identity) {
	if id.Assigned() {
		c.follower.Publish(id)
	}
}

// Run claims an id and runs the command under it, and again under the next, until the command ends by itself or ctx ends. It returns when
// nothing of the command is left and the slot was given back, or could not be: the command's exit code, or an error, of the command's
// start (*child.StartError), of the claim, of the directory or of the server.
func Run(ctx context.Context, o Options, command Command) (code int, err error) {
	signalled := ctx
	// A signal goes to the command first; everything else goes on until that has ended.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	a, err := newAgent(o, cancel)
	if err != nil {
		return 0, err
	}
	c := &above{agent: a, follower: child.NewFollower(child.Options{
		Runner: command.Processes, Command: command.Line, Environ: os.Environ(), StopTimeout: command.StopTimeout,
		KeepOnCountChange: command.KeepOnCountChange, Fenced: a.fenced, Log: o.Allocator.Log,
	})}
	a.work = c
	to := &a.o.Allocator
	to.Stopped, to.HandsOver = c.stopped, true
	// As a container's first process it is followed only when everything in the container has ended; those who read the directory go on.
	to.DiesWithProcess = os.Getpid() == 1 && a.dir == nil
	lead := command.fenceLead(o.FenceAfter)
	if o.FenceAfter > 0 {
		to.FenceAfter, to.FenceLead = o.FenceAfter, lead
		to.Fenced = func(by time.Duration) {
			c.follower.Fence(by - (lead - command.fenceGrace(o.FenceAfter))) // the rest is for the killing
			c.withdraw(identity.StateFenced)
		}
	}
	waitForSignals := forward(ctx, c.follower)
	defer waitForSignals()
	defer cancel(nil)
	stopServer, err := a.serve(ctx, a.server())
	if err != nil {
		return 0, err
	}
	// Whatever ends ctx, the allocator goes on until the command has ended: it watches the time without contact.
	claiming, stopClaiming := context.WithCancel(context.WithoutCancel(ctx))
	claimed := make(chan struct{})
	go func() {
		defer close(claimed)
		if err := a.claim(claiming, func(context.Context) error { return nil }); err != nil && claiming.Err() == nil {
			if to.Fenced != nil {
				to.Fenced(boottime.Now() + lead) // nobody watches the time any more
			}
			cancel(err)
		}
	}()
	if signalled.Err() != nil { // before forward heard of it
		c.follower.Signal(syscall.SIGTERM)
	}
	code, err = c.follower.Run(ctx)
	stopClaiming()
	<-claimed
	if alloc := a.alloc.Load(); alloc != nil {
		c.giveBack(ctx, alloc)
	}
	cancel(nil)
	if stopped := stopServer(); err == nil {
		err = stopped
	}
	return code, err
}

// stopped blocks until nothing works under the id: the command has ended, and those who read the files had time.
func (c *above) stopped(ctx context.Context) error {
	if err := c.follower.Stopped(ctx); err != nil || c.dir == nil {
		return err
	}
	return c.readers.wait(ctx)
}

// giveBack releases the slot when the readers of the files, if there are any, had their time.
func (c *above) giveBack(ctx context.Context, alloc *allocator.Allocator) {
	ctx = context.WithoutCancel(ctx)
	if c.dir != nil {
		c.withdraw(identity.StateDraining)
		if err := c.readers.wait(ctx); err != nil {
			c.o.Allocator.Log.Info("the slot was not released; it comes free when the pod is gone", "reason", err.Error())
			return
		}
	}
	limited, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	c.release(limited, alloc, c.follower.EndedByItself())
}

// forward passes signals on until ctx ends. The returned function waits for that.
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
