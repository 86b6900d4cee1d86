package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/internal/workload"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// releaseTimeout bounds the release at the end; it is below Kubernetes' default grace of 30 s.
const releaseTimeout = 10 * time.Second

type watcher struct {
	inPod
	httpAddress string
	moveDelay   time.Duration
	drain       drainFlags
	fence       fenceFlags
}

func newWatch(g *global) *cobra.Command {
	w := &watcher{inPod: inPod{global: g}}
	cmd := &cobra.Command{
		Use:         "watch",
		Annotations: marked(),
		Short:       "Claim an id for this pod and keep publishing it until told to stop",
		Long: `Claims a slot for this pod, or takes the one that "idalloc init" claimed, and keeps the files in
--dir and the answers on --http-address true until SIGTERM. The file "id" exists only while the
pod may act under its id. Run it beside the workload, or alone as a native sidecar with a startup
probe on /readyz.

When a scale-down leaves this pod with an id at or above the count, the id is withdrawn from the
files, and after --move-delay its slot is given away and a free one below the count is taken. With a
drain hook, --drain-exec or --drain=http, the slot is given away when the hook says that the work
has stopped.

` + rolloutHelp,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd.Context()) },
	}
	w.bind(cmd)
	f := cmd.Flags()
	f.StringVar(&w.httpAddress, "http-address", ":8089", "address of GET /v1/identity, /readyz and /healthz, and of POST /v1/drained; empty: off")
	f.DurationVar(&w.moveDelay, "move-delay", time.Second,
		"without a drain hook: time between withdrawing an id from the files and giving its slot away; longer than the workload takes to notice")
	w.drain.bind(f)
	w.fence.bind(f)
	return cmd
}

func (w *watcher) run(ctx context.Context) error {
	lean()
	drain, err := w.drain.check(w.httpAddress)
	if err != nil {
		return err
	}
	kill, err := w.fence.check()
	if err != nil {
		return err
	}
	if err := w.checkTimeout(w.fence.after); err != nil {
		return err
	}
	log, err := w.logger()
	if err != nil {
		return err
	}
	o, err := w.options(log)
	if err != nil {
		return err
	}
	dir, first, err := w.open(o)
	if err != nil {
		return err
	}
	signalled := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hub := publish.NewHub(first)
	loop := &loop{watcher: w, shelf: dir, signalled: signalled, log: log}
	tell := &announcer{shelf: dir, hub: hub, fenced: loop.fenced, fail: cancel}
	hub.CheckFenced(loop.fenced)
	left, err := tell.recall()
	if err != nil {
		return err
	}
	o.Publish, o.Stale = tell.publish, hub.SetStale
	w.setStopped(&o, tell, drain)
	if kill != nil {
		f := &fencer{log: log, lead: w.fence.lead(), withdraw: tell.withdraw, kill: kill.Run, killed: tell.stopped}
		o.FenceAfter, o.FenceLead = w.fence.after, f.lead
		o.Fenced = func(time.Duration) { f.fence(ctx) }
		if left {
			f.fence(ctx) // nobody watched the time since the process before this one ended
		}
	}
	loop.o = o
	if w.httpAddress == "" {
		return loop.run(ctx)
	}
	server := publish.NewServer(w.httpAddress, hub, func(context.Context) error { return loop.healthy() })
	if w.drain.mode == drainHTTP {
		server.OnDrained(tell.gate.Drained)
		loop.secretive = server.RequireSecret
	}
	return w.serve(ctx, cancel, server, loop)
}

// serve runs the loop and the server until one of them ends, and then the other.
func (w *watcher) serve(ctx context.Context, cancel context.CancelCauseFunc, server *publish.Server, loop *loop) error {
	if err := server.Listen(ctx); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() {
		err := server.Run(ctx)
		cancel(err)
		served <- err
	}()
	err := loop.run(ctx)
	cancel(err)
	return errors.Join(err, <-served)
}

// setStopped says what "the work has stopped" means here. Only a drain hook knows, so only with one
// this pod's slot may be asked for.
func (w *watcher) setStopped(o *allocator.Options, tell *announcer, command *hook.Command) {
	if !w.drain.hooked() {
		o.Stopped = w.waitMoveDelay
		return
	}
	d := &drainer{drainFlags: w.drain, log: o.Log, givenUp: tell.givenUp, done: tell.stopped}
	d.ask = func(ctx context.Context, _ identity.Identity) error { return tell.gate.Wait(ctx) }
	if command != nil {
		d.ask = command.Run
	}
	o.HandsOver, o.Stopped = true, d.stopped
}

// waitMoveDelay is what a watcher can do for "the work has stopped": the id is out of the files,
// and the workload had time to notice.
func (w *watcher) waitMoveDelay(ctx context.Context) error {
	if !sleep(ctx, w.moveDelay) {
		return context.Cause(ctx)
	}
	return nil
}

// loop runs the allocator of a watcher from start to release.
type loop struct {
	*watcher
	o     allocator.Options
	shelf *shelf
	// signalled ends when this process is told to stop.
	signalled context.Context //nolint:containedctx // to tell a signal from a failure
	log       logr.Logger
	alloc     atomic.Pointer[allocator.Allocator]
	// secretive makes the workload's word need a secret; nil where nobody waits for it.
	secretive func(secret string)
}

func (l *loop) healthy() error {
	if a := l.alloc.Load(); a != nil {
		return a.Healthy()
	}
	return nil // still looking for the API server
}

// fenced reports by the clock whether the id that was published last is given up for lack of contact.
func (l *loop) fenced() bool {
	a := l.alloc.Load()
	return a != nil && a.Fenced()
}

func (l *loop) run(ctx context.Context) error {
	first, stop := l.untilFirst(ctx)
	defer stop()
	a, err := l.shelf.newAllocator(first, l.o)
	if err != nil {
		return l.end(ctx, err)
	}
	l.alloc.Store(a)
	if err := l.guardDrain(first); err != nil {
		return l.end(ctx, noSlotIfLate(err))
	}
	if err := a.Run(first); err != nil {
		err = l.end(ctx, noSlotIfLate(err))
		if err != nil {
			return err
		}
	}
	return l.release(ctx, a)
}

// guardDrain makes the workload's word need a secret where others than this pod have its loopback interface. It
// comes before the first identity, and nobody waits for a word before that.
func (l *loop) guardDrain(ctx context.Context) error {
	if l.secretive == nil {
		return nil
	}
	for {
		shared, err := workload.HostNetwork(ctx, l.o.Store, l.o.Namespace, l.o.Pod)
		switch {
		case err == nil && !shared:
			return nil
		case err == nil:
			secret, err := l.shelf.Secret()
			if err == nil {
				l.secretive(secret)
			}
			return err
		case !store.Temporary(err):
			return err
		}
		l.log.Info("a request failed and will be repeated", "reason", err.Error())
		if !sleep(ctx, time.Second) {
			return context.Cause(ctx)
		}
	}
}

// untilFirst returns a context that --timeout ends if there was no id until then.
func (l *loop) untilFirst(ctx context.Context) (context.Context, func()) {
	first, cancel := context.WithCancelCause(ctx)
	if l.timeout <= 0 {
		return first, func() { cancel(nil) }
	}
	assigned := make(chan struct{})
	publishTo := l.o.Publish
	done := false
	l.o.Publish = func(id identity.Identity) {
		publishTo(id)
		if id.Assigned() && !done {
			done = true
			close(assigned)
		}
	}
	timer := time.NewTimer(l.timeout)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(fmt.Errorf("%w (%s)", errTimeout, l.timeout))
		case <-assigned:
		case <-first.Done():
		}
	}()
	return first, func() { cancel(nil) }
}

// end drops the error of a loop that was told to stop.
func (l *loop) end(ctx context.Context, err error) error {
	select {
	case <-l.signalled.Done():
		return nil
	default:
		return cmp.Or(context.Cause(ctx), err)
	}
}

// release gives the slot back if this is a native sidecar whose workload has ended. Anybody else
// cannot know: a failing probe sends SIGTERM too, and a restarted container takes the id again.
func (l *loop) release(ctx context.Context, a *allocator.Allocator) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	ended, err := workload.Ended(ctx, l.o.Store, l.o.Namespace, l.o.Pod)
	if err != nil || !ended {
		l.log.Info("stopped; the pod keeps its slot until it is gone", "pod", l.o.Pod)
		return nil
	}
	if err := a.Release(ctx, false); err != nil {
		l.log.Info("the slot was not released; it comes free when the pod is gone", "reason", err.Error())
		return nil
	}
	l.log.Info("slot released", "pod", l.o.Pod)
	return nil
}
