//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/idalloc/idalloc/internal/boottime"
	"github.com/idalloc/idalloc/internal/child"
	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// conductor runs the allocator, the command and the HTTP server together, and ends them in order.
type conductor struct {
	*runner
	o        allocator.Options
	follower *child.Follower
	hub      *publish.Hub
	shelf    *shelf // nil without --dir
	readers  *readers
	alloc    atomic.Pointer[allocator.Allocator]
	// mu is held while files, answers and the command are told of one identity.
	mu sync.Mutex
	// first is done once: by the first id, or by --timeout.
	first sync.Once
	// fail ends all with an error.
	fail context.CancelCauseFunc
}

func newConductor(r *runner, o allocator.Options, processes *child.Runner, command []string) *conductor {
	c := &conductor{runner: r, o: o, hub: publish.NewHub(identity.Pending(o.Pod, o.Namespace)), readers: &readers{delay: r.moveDelay}}
	c.follower = child.NewFollower(child.Options{
		Runner: processes, Command: command, Environ: os.Environ(), StopTimeout: r.stopTimeout,
		KeepOnCountChange: len(r.restartOn) == 1, Fenced: c.fenced, Log: o.Log,
	})
	c.hub.CheckFenced(c.fenced)
	c.o.Publish, c.o.Stale = c.publish, c.hub.SetStale
	c.o.Stopped, c.o.HandsOver = c.stopped, true
	// As a container's first process it is followed only when everything in the container has ended; who reads --dir goes on.
	c.o.DiesWithProcess = os.Getpid() == 1 && r.dir == ""
	if r.fenceAfter > 0 {
		c.o.FenceAfter, c.o.FenceLead = r.fenceAfter, r.fenceLead()
		c.o.Fenced = func(by time.Duration) {
			c.follower.Fence(by - (r.fenceLead() - r.fenceGrace())) // the rest is for the killing
			c.withdraw()
		}
	}
	return c
}

// run returns when nothing of the command is left and the slot was given back, or could not be.
func (c *conductor) run(ctx context.Context) error {
	signalled := ctx
	// A signal goes to the command first; everything else goes on until that has ended.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	c.fail = cancel
	waitForSignals := forward(ctx, c.follower)
	defer waitForSignals()
	defer cancel(nil)
	if c.dir != "" {
		var err error
		if c.shelf, _, err = c.open(c.o); err != nil {
			return err
		}
	}
	stopServer, err := c.serve(ctx)
	if err != nil {
		return err
	}
	// Whatever ends ctx, the allocator goes on until the command has ended: it watches the time without contact.
	claiming, stopClaiming := context.WithCancel(context.WithoutCancel(ctx))
	claimed := make(chan struct{})
	go func() {
		defer close(claimed)
		if err := c.claim(claiming); err != nil && claiming.Err() == nil {
			if c.o.Fenced != nil {
				c.o.Fenced(boottime.Now() + c.fenceLead()) // nobody watches the time any more
			}
			cancel(err)
		}
	}()
	if signalled.Err() != nil { // before forward heard of it
		c.follower.Signal(syscall.SIGTERM)
	}
	code, err := c.follower.Run(ctx)
	stopClaiming()
	<-claimed
	c.release(ctx)
	cancel(nil)
	return errors.Join(ended(code, err), stopServer())
}

// claim runs the allocator until ctx ends, or there is no slot within --timeout.
func (c *conductor) claim(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.timeout > 0 {
		timer := time.AfterFunc(c.timeout, func() {
			c.first.Do(func() { cancel(fmt.Errorf("%w (%s)", errTimeout, c.timeout)) })
		})
		defer timer.Stop()
	}
	a, err := c.newAllocator(ctx)
	if err != nil {
		return noSlotIfLate(err)
	}
	c.alloc.Store(a)
	return noSlotIfLate(a.Run(ctx))
}

func (c *conductor) newAllocator(ctx context.Context) (*allocator.Allocator, error) {
	if c.shelf != nil {
		return c.shelf.newAllocator(ctx, c.o)
	}
	return allocator.New(ctx, c.o)
}

// publish is for allocator.Options.Publish. The command is told of an id last, when the files and
// answers that it may read have it, and first that there is none.
func (c *conductor) publish(id identity.Identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id.Assigned() && c.fenced() {
		id = id.Without(identity.StateFenced) // told after it was decided, for what is over meanwhile
	}
	c.announce(id)
}

// withdraw shows at once that the id is given up for lack of contact.
func (c *conductor) withdraw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := c.hub.Get().Identity; id.Assigned() {
		c.announce(id.Without(identity.StateFenced))
	}
}

func (c *conductor) announce(id identity.Identity) {
	if !id.Assigned() {
		c.follower.Publish(id)
	}
	if c.shelf != nil {
		if err := c.shelf.Publish(id); err != nil {
			c.fail(err) // files that say an old identity are worse than a restart
			if id.Assigned() {
				return
			}
		} else {
			c.readers.told(id)
		}
	}
	c.hub.Set(id)
	if id.Assigned() {
		c.first.Do(func() {})
		c.follower.Publish(id)
	}
}

// stopped blocks until nothing works under the id: the command has ended, and who reads the files had time.
func (c *conductor) stopped(ctx context.Context) error {
	if err := c.follower.Stopped(ctx); err != nil || c.shelf == nil {
		return err
	}
	return c.readers.wait(ctx)
}

// fenced reports by the clock whether the id that was published last is given up for lack of contact.
func (c *conductor) fenced() bool {
	a := c.alloc.Load()
	return a != nil && a.Fenced()
}

func (c *conductor) healthy(context.Context) error {
	if a := c.alloc.Load(); a != nil {
		return a.Healthy()
	}
	return nil // still looking for the API server
}

// serve starts the HTTP server, if there is to be one. The returned function waits for its end, after
// ctx has ended.
func (c *conductor) serve(ctx context.Context) (wait func() error, err error) {
	if c.httpAddress == "" {
		return func() error { return nil }, nil
	}
	server := publish.NewServer(c.httpAddress, c.hub, c.healthy)
	if err := server.Listen(ctx); err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	go func() {
		err := server.Run(ctx)
		if err != nil {
			c.fail(err)
		}
		served <- err
	}()
	return func() error { return <-served }, nil
}

// release gives the slot back: nothing works under it any more, when the readers of the files had their time.
func (c *conductor) release(ctx context.Context) {
	a := c.alloc.Load()
	if a == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	err := c.withdrawForReaders(ctx)
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, releaseTimeout)
		defer cancel()
		err = a.Release(limited, c.follower.EndedByItself())
	}
	if err != nil {
		c.o.Log.Info("the slot was not released; it comes free when the pod is gone", "reason", err.Error())
		return
	}
	c.o.Log.Info("slot released", "pod", c.o.Pod)
}

// withdrawForReaders takes the id out of the files, if there are any, and gives their readers time.
func (c *conductor) withdrawForReaders(ctx context.Context) error {
	if c.shelf == nil {
		return nil
	}
	if c.readers.mayRead() {
		c.mu.Lock()
		c.announce(c.hub.Get().Without(identity.StateDraining))
		c.mu.Unlock()
	}
	return c.readers.wait(ctx)
}
