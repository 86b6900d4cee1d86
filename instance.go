package idalloc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/internal/meter"
	"github.com/idalloc/idalloc/internal/pidlock"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Instance claims an id for this pod and keeps it. Start makes one. Its methods are safe for concurrent use.
type Instance struct {
	options Options
	meter   *meter.Metrics // nil without metrics
	publish func(Identity) // see manner; it may be nil
	alloc   *allocator.Allocator
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the loop has ended

	mu      sync.Mutex
	current Identity
	changed chan struct{} // closed and replaced at every change
	changes chan Identity
	// worked are the partitions that were owned, and whose work is not known to have stopped since.
	worked placement.Set
	err    error // why the loop ended
	closed bool
	// released is closed when the first Close is done. result is the result of that Close.
	released chan struct{}
	result   error
	// endedByItself: the work ended without being told to stop.
	endedByItself bool
	// workStopped is closed while Run's function does not run.
	workStopped chan struct{}
	// leave lets another process of the pod claim ids.
	leave func()
}

// Start finds this pod's owner, and then claims an id and keeps it in the background, until Close.
//
// It blocks until the API server has returned the object that owns the pod, or until ctx ends. Later, ctx has no effect. All other errors are permanent:
// the pod belongs to no workload, the workload's kind cannot carry an assignment, a permission is missing, or another process of the pod, or another
// Instance of this process, already claims ids.
func Start(ctx context.Context, o Options) (*Instance, error) {
	return start(ctx, o, manner{divides: o.Partitions, handsOver: o.Stop != nil, stop: (*Instance).ask})
}

// ask asks the program to stop its work.
func (i *Instance) ask(ctx context.Context, stop allocator.Stop) error {
	if i.options.Stop == nil {
		return nil // it is unknown when the work stops
	}
	set := stop.Partitions
	if stop.All {
		set = i.mayWorkOn()
	}
	stopped := func(part placement.Set) {
		i.stoppedOn(part.Intersect(set))
		stop.Stopped(part)
	}
	if err := i.options.Stop(ctx, Stopping{All: stop.All, Partitions: set, Stopped: stopped}); err != nil {
		return err
	}
	i.stoppedOn(set)
	return nil
}

// stoppedOn records that the work on partitions has stopped. If the stop was called off, work may continue.
func (i *Instance) stoppedOn(set placement.Set) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.worked = i.worked.Minus(set.Minus(i.current.Partitions.Owned()))
}

// mayWorkOn returns the partitions on which the program may be working.
func (i *Instance) mayWorkOn() placement.Set {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.worked
}

// manner is how an instance reports changes and stops work.
type manner struct {
	// divides: the process works on partitions.
	divides bool
	// handsOver: stop returns nil only when the work has stopped.
	handsOver bool
	// inProcess: the work ends with this process, however the process ends. Otherwise an earlier process of the pod may have left work under an unknown id.
	inProcess bool
	// publish is called with each identity after Current has begun to return it. When it returns, no work may begin outside the identity. It may be nil.
	publish func(Identity)
	// stop blocks until the described work has stopped: see allocator.Options.
	stop func(*Instance, context.Context, allocator.Stop) error
}

func start(ctx context.Context, o Options, m manner) (_ *Instance, err error) {
	defer func() { err = named(err) }()
	o, err = o.complete()
	if err != nil {
		return nil, err
	}
	st, err := store.New(connect.Alive(o.Config, o.FenceAfter), o.Clock)
	if err != nil {
		return nil, err
	}
	workStopped := make(chan struct{})
	close(workStopped)
	i := &Instance{
		options: o, meter: (*meter.Metrics)(o.Metrics), publish: m.publish, changed: make(chan struct{}), changes: make(chan Identity, 1), ended: make(chan struct{}),
		workStopped: workStopped, released: make(chan struct{}), current: identity.Pending(o.PodName, o.PodNamespace),
	}
	ao := allocator.Options{
		Store: st, Pod: o.PodName, PodUID: types.UID(o.PodUID), Namespace: o.PodNamespace, Log: o.Log, Publish: i.set,
		FenceAfter: o.FenceAfter, Fenced: i.fence, Divides: m.divides, RestsAfterFailures: m.divides, HandsOver: m.handsOver, Strategies: o.Strategies,
		Stop: func(ctx context.Context, s allocator.Stop) error { return m.stop(i, ctx, s) },
	}
	if !m.inProcess {
		ao.Left = func(string) Identity { return Identity{} }
	}
	if i.meter != nil {
		ao.Observer = i.meter
	}
	if i.alloc, err = allocator.New(ctx, ao); err != nil {
		return nil, err
	}
	i.leave = func() {}
	if pidlock.Inside(o.PodName) { // a process outside the pod is none of the pod's
		if i.leave, err = pidlock.Hold(o.PodName, i.alloc.PodUID()); err != nil {
			return nil, err
		}
	}
	if i.meter != nil {
		i.meter.CheckFenced(i.alloc.Fenced)
	}
	// The loop outlives ctx. It keeps the id until Close, which the caller calls when the work under the id has stopped.
	loop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	i.cancel = cancel
	go i.loop(loop)
	return i, nil
}

func (i *Instance) loop(ctx context.Context) {
	defer close(i.ended)
	err := named(i.alloc.Run(ctx))
	if ctx.Err() != nil {
		err = ErrClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
	if i.current.Assigned() && !errors.Is(err, ErrClosed) {
		state := identity.StateDraining // the pod still locks its slot
		switch {
		case errors.Is(err, allocator.ErrPodGone):
			state = identity.StateLost
		case i.options.FenceAfter > 0:
			state = identity.StateFenced // the Lease is no longer renewed
		}
		i.withdraw(state)
	}
	i.announce()
}

// withdraw removes the id because its loop has ended, which the metrics would not notice. The caller must hold the lock.
func (i *Instance) withdraw(state identity.State) {
	from := i.current
	i.current = from.Without(state)
	if i.meter != nil {
		i.meter.Observe(event.Published{From: from, To: i.current})
	}
}

// set receives an identity from the loop. It does not hold the lock while publish asks for the current identity.
func (i *Instance) set(id Identity) {
	id = i.change(func(Identity) Identity { return i.checked(id) })
	if i.publish != nil {
		i.publish(id)
	}
}

// change replaces the current identity, and returns the new one.
func (i *Instance) change(to func(Identity) Identity) Identity {
	i.mu.Lock()
	defer i.mu.Unlock()
	if next := to(i.current); next != i.current {
		i.current, i.worked = next, i.worked.Union(next.Partitions.Owned())
		i.announce()
	}
	return i.current
}

// fence is called when the process has fenced itself because contact was lost.
func (i *Instance) fence(time.Duration) {
	i.change(func(now Identity) Identity {
		if now.Assigned() {
			return now.Without(identity.StateFenced)
		}
		return now
	})
}

// checked returns id, or its fenced form if its deadline has passed since it was published (strict mode).
func (i *Instance) checked(id Identity) Identity {
	if id.Assigned() && i.alloc.Fenced() {
		return id.Without(identity.StateFenced)
	}
	return id
}

// announce wakes all waiting callers. The caller must hold the lock.
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

// Current returns the present identity, without blocking. Check Assigned before you use its ID. In strict mode, Current compares the deadline with the
// clock, so a process that was suspended for too long gets a fenced identity.
func (i *Instance) Current() Identity {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.checked(i.current)
}

// Owned returns the partitions on which the program may work now, in ascending order, without blocking. It compares the deadline with the clock, like
// Current. Without Options.Partitions there are none.
func (i *Instance) Owned() []Partition { return owned(i.Current()) }

// Changes returns a channel that gets the newest identity after each change. An identity that was not received before the
// next change is dropped. All callers share the channel, and Close closes it. In strict mode, call Current before you act
// on a received identity, because its deadline may have passed.
func (i *Instance) Changes() <-chan Identity { return i.changes }

// Healthy returns an error if the loop is stuck or has ended. It does not block, and it returns nil while the API server is away.
func (i *Instance) Healthy() error {
	i.mu.Lock()
	err := i.err
	i.mu.Unlock()
	if err != nil {
		return err
	}
	return named(i.alloc.Healthy())
}

// Wait blocks until an id is assigned, and returns the identity. If ctx ends before that, the error describes what Wait waited for, and wraps ErrNoSlot and
// the cause of ctx. If the loop has ended, so that there will never be an id, Wait returns the reason: ErrClosed after Close.
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
			return current, fmt.Errorf(name+"%w: %w: waited for %s", ErrNoSlot, context.Cause(ctx), i.alloc.Waiting())
		case <-changed:
		}
	}
}

// Failed records that the work under the id ended without being told to stop. If that is soon after the id was assigned, the pod makes way for others, as
// it does after Run's function returned by itself. Call it before Close.
func (i *Instance) Failed() { i.endsByItself(true) }

func (i *Instance) endsByItself(byItself bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.endedByItself = byItself
}

// Close ends the instance and releases its slot. Call it after the work under the id has stopped.
//
// It blocks until the slot is released or ctx ends. If it returns an error, the slot comes free when the pod is gone.
// Another call waits for the first one and returns the same result.
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
	gone, byItself := errors.Is(i.err, allocator.ErrPodGone), i.endedByItself
	i.mu.Unlock()
	if !first {
		select {
		case <-i.released:
			return i.result
		case <-ctx.Done():
			return fmt.Errorf("idalloc: close: %w", context.Cause(ctx))
		}
	}
	if !gone {
		i.result = named(i.alloc.Release(ctx, byItself))
	}
	i.leave()
	close(i.released)
	close(i.changes)
	return i.result
}
