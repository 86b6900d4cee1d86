package context

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// ErrClosed means that the instance was closed.
var ErrClosed = errors.New("idalloc: the instance was closed")

// Instance is this pod's part in its workload: it claims an id, keeps it and follows it. Its
// methods are safe for concurrent use.
type Instance struct {
	options Options
	alloc   *allocator.Allocator
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the loop has ended

	mu      sync.Mutex
	current Identity
	changed chan struct{} // closed and replaced at every change
	changes chan Identity
	err     error // why the loop ended
	closed  bool
	// released is closed when the first Close is done; result is what it returned.
	released chan struct{}
	result   error
	// byItself says that Run's function ended although nobody told it to; Run alone uses it.
	byItself bool
	idle     chan struct{} // closed when it does not
}

// Start finds this pod's owner and begins to claim an id in the background, until Close. It blocks
// until the API server answered who owns the pod. Errors are for good: a pod without a workload, a
// kind that cannot be counted, a missing permission.
func Start(ctx context.Context, o Options) (*Instance, error) {
	return start(ctx, o, nil)
}

func start(ctx context.Context, o Options, stopped func(*Instance, context.Context) error) (*Instance, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	st, err := o.store()
	if err != nil {
		return nil, err
	}
	idle := make(chan struct{})
	close(idle)
	i := &Instance{
		options: o, changed: make(chan struct{}), changes: make(chan Identity, 1), ended: make(chan struct{}), idle: idle, released: make(chan struct{}),
		current: identity.Pending(o.PodName, o.PodNamespace),
	}
	ao := allocator.Options{
		Store: st, Pod: o.PodName, PodUID: types.UID(o.PodUID), Namespace: o.PodNamespace, Log: o.Log, Publish: i.set, Stopped: o.Stopped,
		HandsOver: stopped != nil || o.Stopped != nil, DiesWithProcess: stopped != nil, FenceAfter: o.FenceAfter, Fenced: i.fence,
	}
	if stopped != nil {
		ao.Stopped = func(ctx context.Context) error { return stopped(i, ctx) }
	}
	if i.alloc, err = allocator.New(ctx, ao); err != nil {
		return nil, err
	}
	// The loop outlives ctx: an id is kept until its work has stopped, which Close is told.
	loop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	i.cancel = cancel
	go i.loop(loop)
	return i, nil
}

func (i *Instance) loop(ctx context.Context) {
	defer close(i.ended)
	err := i.alloc.Run(ctx)
	if ctx.Err() != nil {
		err = ErrClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
	if i.current.Assigned() && !errors.Is(err, ErrClosed) {
		i.current = i.current.Without(identity.StateLost)
	}
	i.announce()
}

// set takes in an identity from the loop.
func (i *Instance) set(id Identity) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current = i.checked(id)
	i.announce()
}

// fence takes in that the id was given up for lack of contact.
func (i *Instance) fence(time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current.Assigned() {
		i.current = i.current.Without(identity.StateFenced)
		i.announce()
	}
}

// checked returns id as it is by the clock: strict mode may have ended it since it was published.
func (i *Instance) checked(id Identity) Identity {
	if id.Assigned() && i.alloc.Fenced() {
		return id.Without(identity.StateFenced)
	}
	return id
}

// announce wakes everybody who waits. The caller has the lock.
func (i *Instance) announce() {
	close(i.changed)
	i.changed = make(chan struct{})
	select {
	case <-i.changes:
	default:
	}
	if !i.closed {
		i.changes <- i.current
	}
}

// Current returns the identity at this moment, without blocking. Only an assigned one has an id. In
// strict mode it looks at the clock, so that a process that was suspended finds itself fenced.
func (i *Instance) Current() Identity {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.checked(i.current)
}

// Changes returns a channel that has the newest identity whenever it changed since it was last
// received; what came in between is left out. It is closed by Close. All callers share it. It is news:
// in strict mode ask Current before acting on it.
func (i *Instance) Changes() <-chan Identity { return i.changes }

// Healthy returns an error if the loop is stuck or has ended. An API server that is away is no error.
func (i *Instance) Healthy() error {
	i.mu.Lock()
	err := i.err
	i.mu.Unlock()
	if err != nil {
		return err
	}
	return i.alloc.Healthy()
}

// Wait blocks until an id is assigned and returns it. Its error says what it waited for when ctx
// ended, or why there will never be an id.
func (i *Instance) Wait(ctx context.Context) (Identity, error) {
	return i.await(ctx, Identity.Assigned)
}

func (i *Instance) await(ctx context.Context, until func(Identity) bool) (Identity, error) {
	for {
		i.mu.Lock()
		current, changed, err := i.checked(i.current), i.changed, i.err
		i.mu.Unlock()
		if until(current) {
			return current, nil
		}
		if err != nil {
			return current, err
		}
		select {
		case <-ctx.Done():
			return current, fmt.Errorf("%w: %w: waited for %s", allocator.ErrNoSlot, context.Cause(ctx), i.alloc.Waiting())
		case <-changed:
		}
	}
}

// Close ends the instance and gives its slot back. Call it when the work under the id has stopped.
// It blocks until the slot is given back or ctx ends; then the slot comes free when the pod is gone.
// Closing again waits for the first Close and returns what it returned.
func (i *Instance) Close(ctx context.Context) error {
	i.cancel()
	select {
	case <-i.ended:
	case <-ctx.Done():
		return fmt.Errorf("idalloc: close: %w", context.Cause(ctx))
	}
	i.mu.Lock()
	first := !i.closed
	i.closed = true
	failed := !errors.Is(i.err, ErrClosed)
	i.mu.Unlock()
	if !first {
		select {
		case <-i.released:
			return i.result
		case <-ctx.Done():
			return fmt.Errorf("idalloc: close: %w", context.Cause(ctx))
		}
	}
	if !failed { // a loop that ended by itself has no id
		i.result = i.alloc.Release(ctx, i.byItself)
	}
	close(i.released)
	close(i.changes)
	return i.result
}
