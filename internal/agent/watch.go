package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Hooks say how Watch learns that the work under an id has stopped, and how it stops it.
type Hooks struct {
	// Drain stops the work and returns when it has stopped; nil if it is not a command.
	Drain *hook.Command
	// DrainHTTP has the workload say over HTTP that it has stopped.
	DrainHTTP bool
	// DrainTimeout bounds both; zero waits for ever. Then the slot is kept, or, with GiveAtTimeout, given away all the same.
	DrainTimeout  time.Duration
	GiveAtTimeout bool
	// Fence stops the work at once, for strict mode.
	Fence *hook.Command
}

// hooked reports whether anybody knows that the work has stopped.
func (h Hooks) hooked() bool { return h.Drain != nil || h.DrainHTTP }

// fenceLead is the time that the fence hook has.
func fenceLead(fenceAfter time.Duration) time.Duration { return fenceAfter / 3 }

// Watch claims an id and keeps showing it until ctx ends. Then it returns nil; the slot is given back if the pod's workload has ended.
// The errors are those of the claim, of the directory and of the server.
func Watch(ctx context.Context, o Options, hooks Hooks) error {
	signalled := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a, err := newAgent(o, cancel)
	if err != nil {
		return err
	}
	b := &beside{agent: a}
	a.work = b
	left, err := b.recall()
	if err != nil {
		return err
	}
	a.o.Allocator.Stopped, a.o.Allocator.HandsOver = b.stoppedBy(hooks), hooks.hooked()
	if hooks.Fence != nil {
		f := &fencer{beside: b, lead: fenceLead(o.FenceAfter), kill: hooks.Fence.Run}
		a.o.Allocator.FenceAfter, a.o.Allocator.FenceLead = o.FenceAfter, f.lead
		a.o.Allocator.Fenced = func(time.Duration) { f.fence(ctx) }
		if left {
			f.fence(ctx) // nobody watched the time since the process before this one ended
		}
	}
	server := a.server()
	if hooks.DrainHTTP && server != nil {
		server.OnDrained(b.gate.Drained)
		b.requireSecret = server.RequireSecret
	}
	stopServer, err := a.serve(ctx, server)
	if err != nil {
		return err
	}
	err = a.claim(ctx, b.guardGate)
	select {
	case <-signalled.Done(): // told to stop, which is no error
		err = nil
		if alloc := a.alloc.Load(); alloc != nil {
			b.releaseIfEnded(ctx, alloc)
		}
	default:
		err = cmp.Or(context.Cause(ctx), err)
	}
	cancel(err)
	return cmp.Or(err, stopServer())
}

// beside is a workload in other containers of the pod.
type beside struct {
	*agent
	gate hook.Gate
	// requireSecret makes the workload's word need a secret; nil where nobody waits for it.
	requireSecret func(secret string)
	// last is the id that the workload was told of last and may be working under, until it is known to
	// have stopped; it is not assigned when there is none. It is guarded by the agent's lock.
	last identity.Identity
}

// recall takes in what an earlier process of this pod told the workload. left is false when it told nothing.
func (b *beside) recall() (left bool, err error) {
	if b.dir == nil {
		return false, nil
	}
	there, found, err := b.dir.ours()
	if err != nil || !found {
		return false, err
	}
	b.last = there
	if !there.Assigned() {
		b.last, err = b.dir.Noted()
	}
	return b.last.Assigned(), err
}

// before keeps what the workload may be working under, also for a process that comes after this one. The gate is open before the
// workload can know that it is to stop, so that its word does not come too early; and closed before it is told to work again, so that
// no word counts which it does not keep.
func (b *beside) before(id identity.Identity) error {
	if err := b.remember(id); err != nil {
		return err
	}
	if id.State == identity.StateDraining {
		b.gate.Open(b.last.Epoch)
	} else {
		b.gate.Close()
	}
	return nil
}

func (b *beside) after(identity.Identity) {}

func (b *beside) remember(id identity.Identity) error {
	switch {
	case id.Assigned():
		b.last = id
		return nil // the files say it
	case id.State == identity.StateReleased: // only when the workload has ended
		b.last = identity.Identity{}
	}
	return b.note()
}

func (b *beside) note() error {
	if b.dir == nil {
		return nil
	}
	return b.dir.Note(b.last)
}

// stopped takes in that no work goes on under id.
func (b *beside) stopped(id identity.Identity) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != id || b.shown.Assigned() {
		return nil // told of one again
	}
	b.last = identity.Identity{}
	return b.note()
}

// mayWork returns the id that the workload was told of, if it was.
func (b *beside) mayWork() (identity.Identity, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last, b.last.Assigned()
}

// stoppedBy says what "the work has stopped" means here. Only a drain hook knows; without one the workload has time to notice.
func (b *beside) stoppedBy(hooks Hooks) func(context.Context) error {
	if !hooks.hooked() {
		return b.readers.wait
	}
	d := &drainer{beside: b, timeout: hooks.DrainTimeout, giveAtTimeout: hooks.GiveAtTimeout}
	d.ask = func(ctx context.Context, _ identity.Identity) error { return b.gate.Wait(ctx) }
	if hooks.Drain != nil {
		d.ask = hooks.Drain.Run
	}
	return d.stopped
}

// guardGate makes the workload's word need a secret where others than this pod have its loopback interface. It
// comes before the first identity, and nobody waits for a word before that.
func (b *beside) guardGate(ctx context.Context) error {
	if b.requireSecret == nil {
		return nil
	}
	o := b.o.Allocator
	for {
		shared, err := hostNetwork(ctx, o.Store, o.Namespace, o.Pod)
		switch {
		case err == nil && !shared:
			return nil
		case err == nil:
			secret, err := b.dir.Secret()
			if err == nil {
				b.requireSecret(secret)
			}
			return err
		case !store.Temporary(err):
			return err
		}
		o.Log.Info("a request failed and will be repeated", "reason", err.Error())
		if !sleep(ctx, time.Second) {
			return context.Cause(ctx)
		}
	}
}

// releaseIfEnded gives the slot back if this is a native sidecar whose workload has ended. Anybody else
// cannot know: a failing probe sends SIGTERM too, and a restarted container takes the id again.
func (b *beside) releaseIfEnded(ctx context.Context, alloc *allocator.Allocator) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	o := b.o.Allocator
	over, err := Ended(ctx, o.Store, o.Namespace, o.Pod)
	if err != nil || !over {
		o.Log.Info("stopped; the pod keeps its slot until it is gone", "pod", o.Pod)
		return
	}
	b.release(ctx, alloc, false)
}
