package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// ErrTimeout is in the error when there was no id within Options.Timeout.
var ErrTimeout = errors.New("--timeout is over")

// releaseTimeout bounds the release at the end; it is below Kubernetes' default grace of 30 s.
const releaseTimeout = 10 * time.Second

// Options are what Init, Watch and Run have in common.
type Options struct {
	// Allocator says who claims, and for which pod. What it tells and asks is set here.
	Allocator allocator.Options
	// Dir is the directory that identities are published in; empty: none.
	Dir string
	// HTTPAddress is where they are answered; empty: nowhere.
	HTTPAddress string
	// Timeout is how long there may be no id at first; zero waits for ever.
	Timeout time.Duration
	// MoveDelay is the least time between withdrawing an id from the files and giving its slot away, for those who read them.
	MoveDelay time.Duration
	// FenceAfter turns strict mode on.
	FenceAfter time.Duration
}

// work is what acts under the id.
type work interface {
	// before is told of an identity before files and answers show it, after when they do.
	before(id identity.Identity) error
	after(id identity.Identity)
}

// agent shows one allocator's identities.
type agent struct {
	o    Options
	dir  *volume // nil without a directory
	hub  *publish.Hub
	work work
	// readers are those who read the files.
	readers *readers
	alloc   atomic.Pointer[allocator.Allocator]
	// mu is held while work, files and answers are told of one identity.
	mu sync.Mutex
	// shown is that identity.
	shown identity.Identity
	// first is done once: by the first id, or by the timeout.
	first sync.Once
	// fail ends all with an error.
	fail context.CancelCauseFunc
}

// newAgent makes the directory ready.
func newAgent(o Options, fail context.CancelCauseFunc) (*agent, error) {
	a := &agent{o: o, readers: &readers{delay: o.MoveDelay}, fail: fail}
	first := identity.Pending(o.Allocator.Pod, o.Allocator.Namespace)
	if o.Dir != "" {
		var err error
		if a.dir, first, err = open(o.Dir, o.Allocator); err != nil {
			return nil, err
		}
		a.shown = a.dir.left
	}
	a.hub = publish.NewHub(first)
	a.hub.CheckFenced(a.fenced)
	a.o.Allocator.Publish, a.o.Allocator.Stale = a.publish, a.hub.SetStale
	return a, nil
}

// fenced reports by the clock whether the id that was published last is given up for lack of contact.
func (a *agent) fenced() bool {
	alloc := a.alloc.Load()
	return alloc != nil && alloc.Fenced()
}

func (a *agent) healthy(context.Context) error {
	if alloc := a.alloc.Load(); alloc != nil {
		return alloc.Healthy()
	}
	return nil // still looking for the API server
}

// publish is for allocator.Options.Publish.
func (a *agent) publish(id identity.Identity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id.Assigned() && a.fenced() {
		id = id.Without(identity.StateFenced) // told after it was decided, for what is over meanwhile
	}
	a.show(id)
}

// withdraw takes back at once what is shown, if that is an id, whatever the allocator is at.
func (a *agent) withdraw(state identity.State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shown.Assigned() {
		a.show(a.shown.Without(state))
	}
}

// show tells everybody. The caller has the lock.
func (a *agent) show(id identity.Identity) {
	if err := a.work.before(id); err != nil {
		a.fail(err)
		return
	}
	if a.dir != nil {
		if err := a.dir.Publish(id); err != nil {
			a.fail(err) // files that say an old identity are worse than a restart
			if id.Assigned() {
				return
			}
		} else {
			a.readers.told(id)
		}
	}
	a.hub.Set(id)
	a.shown = id
	if id.Assigned() {
		a.first.Do(func() {})
	}
	a.work.after(id)
}

// claim runs the allocator until ctx ends, or there is no slot within the timeout. ready is called before the first identity.
func (a *agent) claim(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if a.o.Timeout > 0 {
		timer := time.AfterFunc(a.o.Timeout, func() {
			a.first.Do(func() { cancel(fmt.Errorf("%w (%s)", ErrTimeout, a.o.Timeout)) })
		})
		defer timer.Stop()
	}
	alloc, err := a.newAllocator(ctx)
	if err != nil {
		return noSlotIfLate(err)
	}
	a.alloc.Store(alloc)
	if err := ready(ctx); err != nil {
		return noSlotIfLate(err)
	}
	return noSlotIfLate(alloc.Run(ctx))
}

// newAllocator finds the owner, and makes the directory this pod's.
func (a *agent) newAllocator(ctx context.Context) (*allocator.Allocator, error) {
	if a.dir == nil {
		return allocator.New(ctx, a.o.Allocator)
	}
	o := a.o.Allocator
	o.Memory = a.dir.Memory()
	alloc, err := allocator.New(ctx, o)
	if errors.Is(err, allocator.ErrPodGone) {
		return nil, errors.Join(err, a.dir.empty())
	}
	if err != nil {
		return nil, err
	}
	return alloc, a.dir.claim(alloc.PodUID())
}

// noSlotIfLate: a timeout is no slot in time, whatever it interrupted.
func noSlotIfLate(err error) error {
	if errors.Is(err, ErrTimeout) && !errors.Is(err, allocator.ErrNoSlot) {
		return fmt.Errorf("%w: %w", allocator.ErrNoSlot, err)
	}
	return err
}

// serve starts the HTTP server, if there is to be one. The returned function waits for its end, after ctx has ended.
func (a *agent) serve(ctx context.Context, server *publish.Server) (wait func() error, err error) {
	if server == nil {
		return func() error { return nil }, nil
	}
	if err := server.Listen(ctx); err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	go func() {
		err := server.Run(ctx)
		if err != nil {
			a.fail(err)
		}
		served <- err
	}()
	return func() error { return <-served }, nil
}

// server returns nil without an address.
func (a *agent) server() *publish.Server {
	if a.o.HTTPAddress == "" {
		return nil
	}
	return publish.NewServer(a.o.HTTPAddress, a.hub, a.healthy)
}

// release gives the slot back, when nothing works under it any more.
func (a *agent) release(ctx context.Context, alloc *allocator.Allocator, byItself bool) {
	log := a.o.Allocator.Log
	if err := alloc.Release(ctx, byItself); err != nil {
		log.Info("the slot was not released; it comes free when the pod is gone", "reason", err.Error())
		return
	}
	log.Info("slot released", "pod", a.o.Allocator.Pod)
}

// sleep returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
