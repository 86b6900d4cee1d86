package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/internal/serve"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Hooks configure how Watch stops the work under an id, and how it learns that the work has stopped.
type Hooks struct {
	// Drain is a command that stops the work and returns when it has stopped. It may be nil.
	Drain *hook.Command
	// DrainHTTP: the program reports over HTTP when it has stopped.
	DrainHTTP bool
	// DrainTimeout limits the wait for either of them. Zero waits forever. After the timeout the pod keeps its slot.
	DrainTimeout time.Duration
	// GiveAtTimeout: give the slot away at the timeout instead.
	GiveAtTimeout bool
	// Fence is a command that stops the work at once, for strict mode. It may be nil.
	Fence *hook.Command
}

// hooked reports whether there is a hook that tells when the work has stopped.
func (h Hooks) hooked() bool { return h.Drain != nil || h.DrainHTTP }

// fenceLead returns the time that the fence hook has.
func fenceLead(fenceAfter time.Duration) time.Duration { return fenceAfter / 3 }

// Watch claims an id and shows it until ctx ends; then it returns nil. It releases the slot only if the pod's program has ended. Errors come from the claim,
// the directory or the HTTP server.
func Watch(ctx context.Context, o Options, hooks Hooks) error {
	signalled := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a, err := newAgent(o, cancel)
	if err != nil {
		return err
	}
	defer a.close()
	b := &watchWork{agent: a}
	a.work = b
	left, err := b.recall()
	if err != nil {
		return err
	}
	if err := b.numberStops(hooks); err != nil {
		return err
	}
	a.left, a.o.Allocator.Stop, a.o.Allocator.HandsOver = b.last, b.stopBy(hooks), hooks.hooked()
	if hooks.Fence != nil {
		f := &fencer{watchWork: b, lead: fenceLead(o.FenceAfter), kill: func(ctx context.Context, id identity.Identity) error {
			return hooks.Fence.Run(ctx, id, hook.Stop{})
		}}
		a.o.Allocator.FenceAfter, a.o.Allocator.FenceLead = o.FenceAfter, f.lead
		a.o.Allocator.Fenced = func(time.Duration) { f.begin(ctx) }
		defer f.begun.Wait()
		if left {
			f.fence(ctx) // nothing has watched the deadline since the earlier process ended
		}
	}
	server := a.server()
	if server != nil {
		if err := b.hears(server, hooks); err != nil {
			return err
		}
	}
	stopServer, err := a.serve(ctx, server)
	if err != nil {
		return err
	}
	err = a.claim(ctx, b.begin)
	select {
	case <-signalled.Done(): // the caller stops Watch: not an error
		err = nil
		if alloc := a.alloc.Load(); alloc != nil {
			b.releaseIfEnded(ctx, alloc)
		}
	default:
		err = cmp.Or(context.Cause(ctx), err)
	}
	cancel(err)
	stopServer()
	return err
}

// watchWork is a program that runs in other containers of the pod.
type watchWork struct {
	*agent
	gate hook.Gate
	// gateOfParts accepts or refuses reports that the work on some partitions has stopped.
	gateOfParts hook.Parts
	// pausing is nil if the program cannot pause.
	pausing *pausing
	// last is the identity under which the program may be working: the last identity with an id that it was shown. It is not assigned if the program has
	// stopped. The agent's lock guards it.
	last identity.Identity
}

// recall finds the id under which the program may still be working because of an earlier process of this pod. left is false if there is none. Without a UID,
// the earlier process may belong to another pod of the same name; only the API server knows.
func (b *watchWork) recall() (left bool, err error) {
	if b.dir == nil {
		return false, nil
	}
	there, found, err := b.dir.ours()
	if err != nil || !found {
		return false, err
	}
	b.last = there
	b.gateOfParts.Show(there.Partitions.Stopping(), there.Partitions.Stop) // the program may report that it stopped what the earlier process told it to stop
	if !there.Assigned() {
		b.last, err = b.dir.Noted()
	}
	return b.last.Assigned(), err
}

// hears registers the handlers for the program's reports with the server.
func (b *watchWork) hears(server *serve.Server, hooks Hooks) error {
	if hooks.DrainHTTP {
		server.OnDrained(b.drained)
	}
	if b.o.Partitions && hooks.hooked() {
		b.pausedBy(server)
	}
	if !hooks.DrainHTTP && b.pausing == nil {
		return nil
	}
	secret, err := b.dir.Secret()
	server.RequireSecret(secret)
	return err
}

// pausedBy pauses the pod's partitions when a program posts that to the server, or posted it to an earlier process.
func (b *watchWork) pausedBy(server *serve.Server) {
	b.pausing = newPausing(b.dir.SetPaused)
	server.OnPause(b.pausing.pause)
	b.o.Allocator.Pause, b.o.Allocator.Paused = b.pausing.wishes, b.dir.Paused()
}

// begin runs before the first identity, when the pod's UID is known from the API server. If the directory belonged to another pod, its content no longer
// counts.
func (b *watchWork) begin() error {
	b.mu.Lock()
	_, err := b.recall()
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if b.pausing != nil && b.o.Allocator.Paused && !b.dir.Paused() {
		return b.pausing.pause(false)
	}
	return nil
}

// before notes the id under which the program may be working. A later process reads that note.
//
// It opens the gate before the program can know that it must stop, so that the program's report never comes too early. It closes the gate before the program
// may work again, so that an old report does not count.
func (b *watchWork) before(id identity.Identity) error {
	if err := b.remember(id); err != nil {
		return err
	}
	if id.State == identity.StateDraining {
		b.gate.Open(b.last.Token, id.Stop)
	} else {
		b.gate.Close()
	}
	b.gateOfParts.Show(id.Partitions.Stopping(), id.Partitions.Stop)
	return nil
}

// numberStops gives each stop a number that no earlier stop of the pod had, if there is a hook.
func (b *watchWork) numberStops(hooks Hooks) (err error) {
	if !hooks.hooked() || b.dir == nil {
		return nil
	}
	b.stops.told, b.stops.save = hooks.DrainHTTP, b.dir.SetLastStop
	b.stops.last, err = b.dir.LastStop()
	b.o.Allocator.LastStop = b.stops.last
	return err
}

// drained handles the program's report that it has stopped.
func (b *watchWork) drained(said serve.Report) error {
	if !said.Partitions.Empty() {
		return b.gateOfParts.Drained(said.Partitions, said.Stop)
	}
	return b.gate.Drained(said.Token, said.Stop)
}

func (b *watchWork) after(identity.Identity) {}

func (b *watchWork) remember(id identity.Identity) error {
	switch {
	case id.Assigned():
		b.last = id
		return nil // a later process finds it in the files
	case id.State == identity.StateReleased: // this state follows only after the program has ended
		b.last = identity.Identity{}
	}
	return b.note()
}

func (b *watchWork) note() error {
	if b.dir == nil {
		return nil
	}
	return b.dir.Note(b.last)
}

// stopped records that the work under id has stopped.
func (b *watchWork) stopped(id identity.Identity) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != id || b.shown.Assigned() {
		return nil // the program has been shown an id again
	}
	b.last = identity.Identity{}
	return b.note()
}

// mayWork returns the identity under which the program may be working. ok is false if no work can be running.
func (b *watchWork) mayWork() (id identity.Identity, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last, b.last.Assigned()
}

// stopBy returns the function that blocks until work has stopped. Only a drain hook can tell that. Without a hook, the function gives the program time to
// notice that it must stop.
func (b *watchWork) stopBy(hooks Hooks) func(context.Context, allocator.Stop) error {
	if !hooks.hooked() {
		return b.giveTime
	}
	d := &drainer{watchWork: b, timeout: hooks.DrainTimeout, giveAtTimeout: hooks.GiveAtTimeout, ask: b.awaitReport}
	if hooks.Drain != nil {
		d.ask = func(ctx context.Context, id identity.Identity, stop allocator.Stop) error {
			if stop.All {
				return hooks.Drain.Run(ctx, id, hook.Stop{Number: stop.Number})
			}
			return hooks.Drain.Run(ctx, id, hook.Stop{Number: stop.Number, Partitions: stop.Partitions})
		}
	}
	return d.stop
}

// giveTime blocks until the readers of the files have had their time.
func (b *watchWork) giveTime(ctx context.Context, stop allocator.Stop) error {
	return b.readers.wait(ctx, stop, time.Now())
}

// awaitReport blocks until the program reports over HTTP that its work has stopped.
func (b *watchWork) awaitReport(ctx context.Context, _ identity.Identity, stop allocator.Stop) error {
	if !stop.All {
		return b.gateOfParts.Wait(ctx, stop.Partitions, stop.Stopped)
	}
	b.ask(stop.Number)
	defer b.ask(0)
	return b.gate.Wait(ctx)
}

// releaseIfEnded releases the slot if this is a native sidecar and its program has ended. In any other container a SIGTERM proves nothing: a failing probe also
// sends one, and then the restarted container takes the id again. It reads the pod once, because on a normal deletion the kubelet reports the end of the main
// containers together with the end of the sidecar.
func (b *watchWork) releaseIfEnded(ctx context.Context, alloc *allocator.Allocator) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	o := b.o.Allocator
	over, err := Ended(ctx, o.Store, o.Namespace, o.Pod)
	if err != nil || !over {
		alloc.Note(ctx)
		// Log: `watch` was told to stop; the files stay as they are.
		o.Log.Info("stopped; the pod keeps its slot until it is gone", "pod", o.Pod)
		return
	}
	b.release(ctx, alloc, false)
}
