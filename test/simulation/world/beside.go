package world

import (
	"context"
	"errors"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/partition/placement"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// beside is the work of a pod that is told its id by another program, as by the commands run and watch. It belongs to the pod, and a
// process that is started again finds it.
type beside struct {
	under *identity.Identity // what the work acts under, nil if it does not
	shown identity.Identity  // what it was told last
	turns int                // how often it was told something, or changed by itself
	// idle is closed when the work acts under nothing.
	idle chan struct{}
	// ending says that the pod ends, so that the work does not begin again.
	ending bool
	saved  []byte // of the Memory
	sharesBeside
}

const (
	// moveDelay is the command watch's default, and noticed the most that work without a hook needs to notice a change of its files.
	moveDelay = time.Second
	noticed   = 900 * time.Millisecond
)

func newBeside() *beside {
	b := &beside{idle: make(chan struct{}), sharesBeside: sharesBeside{left: make(chan struct{})}}
	close(b.idle)
	return b
}

// set has the work act under id, nil for nothing.
func (b *beside) set(id *identity.Identity) {
	b.turns++
	switch {
	case b.under == nil && id != nil:
		b.idle = make(chan struct{})
	case b.under != nil && id == nil:
		close(b.idle)
	}
	if b.under = id; id == nil {
		b.leaveAll()
	}
}

// outlives reports whether work goes on that this process told of an id, also when it has ended.
func (p *Process) outlives() bool {
	return p.beside != nil && p.beside.under != nil && p.FenceAfter == 0
}

// end ends all containers of the pod.
func (k *kubeletPod) end() {
	if k.beside != nil {
		k.beside.set(nil)
		k.beside.ending = true
	}
}

// besideBelief is what the work acts under. That of run, in strict mode, ends with its process, and like every work in
// strict mode does nothing while it is suspended.
func (p *Process) besideBelief() *identity.Identity {
	if p.FenceAfter > 0 && (!p.Runs() || p.frozen || (p.slept && p.alloc != nil && p.alloc.Fenced())) {
		return nil
	}
	return p.beside.under
}

// runCommand claims and serves as the commands do: with a fence-after as run, which is the only parent of its work and stops it
// before the time is over, and without as watch, beside work that reads files or is asked by a hook.
func (p *Process) runCommand(ctx context.Context, o idcontext.Options) error {
	st, err := store.New(o.Config, o.AnnotationKey, p.clock)
	if err != nil {
		return err
	}
	ao := allocator.Options{
		Store: st, Pod: p.Pod, PodUID: types.UID(p.UID), Namespace: server.Namespace, Log: o.Log,
		Publish: p.told, Stopped: p.besideStopped, HandsOver: p.w.Profile.HandsOver,
	}
	if p.FenceAfter > 0 {
		ao.FenceAfter, ao.FenceLead, ao.Fenced, ao.Memory = p.FenceAfter, p.FenceAfter/3, p.besideFenced, disk{p}
	}
	if p.divides {
		ao.Partitions = p.partitionsBeside()
		ao.DiesWithProcess = ao.Partitions.InProcess
	}
	claiming, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer p.Thawed()
	claimed := make(chan error, 1)
	go func() { claimed <- p.claim(claiming, ao) }()
	select {
	case err := <-claimed:
		return err
	case <-ctx.Done():
	}
	// Told to end: the work ends first, and who watches the time goes on until then.
	killed := false
	p.w.Alone(func() { //nolint:contextcheck // the world may start another process after it
		if killed = p.Dead; !killed {
			p.beside.ending = true
			p.follow(p.stopTime())
		}
	})
	if !killed {
		_ = p.awaitIdle(context.WithoutCancel(ctx)) // nothing ends it
	}
	stop()
	if err = <-claimed; killed {
		return err
	}
	if alloc := p.allocator(); alloc != nil {
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = alloc.Release(release, false) // what is not released comes free with the pod
	}
	return nil
}

func (p *Process) claim(ctx context.Context, o allocator.Options) error {
	alloc, err := allocator.New(ctx, o)
	if errors.Is(err, allocator.ErrPodGone) {
		p.told(identity.Identity{State: identity.StateLost, ID: identity.None}) //nolint:contextcheck // the world may start another process after it
	}
	if err != nil {
		return err
	}
	p.w.Alone(func() { p.alloc = alloc })
	return alloc.Run(ctx)
}

func (p *Process) allocator() (alloc *allocator.Allocator) {
	p.w.Alone(func() { alloc = p.alloc })
	return alloc
}

// told is for Publish.
func (p *Process) told(id identity.Identity) {
	p.w.Alone(func() {
		if p.Dead {
			return
		}
		p.w.Step("told", p.ID, string(id.State), strconv.Itoa(id.ID), strconv.Itoa(id.Count), strconv.FormatInt(id.Epoch, 10))
		p.said.identity = id
		if p.said.complete(p.divides) {
			p.show()
		}
	})
}

// show has the work follow what the allocator said last.
func (p *Process) show() {
	b := p.beside
	b.shown = p.said.identity
	b.showShares(&p.said)
	if b.under == nil {
		p.follow(0)
		return
	}
	p.beginBeside()
	p.w.Witness.Look()
	p.follow(p.stopTime())
}

// stopTime draws how long the work needs until it does what it was told.
func (p *Process) stopTime() time.Duration {
	d := p.w.Dice("stop", p.ID, strconv.Itoa(p.beside.turns))
	switch {
	case p.w.Profile.SlowStop:
		return d.Span(9*time.Second, 9700*time.Millisecond)
	case p.w.Profile.HandsOver:
		return min(d.Tail(p.w.Profile.Stop), 9*time.Second)
	}
	return d.Span(time.Millisecond, noticed)
}

// follow has the work act under what it was told, after d.
func (p *Process) follow(d time.Duration) {
	b := p.beside
	b.turns++
	do := func() {
		if p.FenceAfter > 0 && !p.Runs() {
			return // the work ended with it
		}
		id := b.shown
		switch {
		case id.Assigned() && !b.ending && (p.alloc == nil || !p.alloc.Fenced()):
			if b.under != nil && *b.under == id {
				p.workAsShown()
				return
			}
			b.set(&id)
			p.slept = false
			p.w.tell(aWorkBegan, p)
			p.w.Step("begin", p.ID, strconv.Itoa(id.ID), strconv.Itoa(id.Count), strconv.FormatInt(id.Epoch, 10))
			p.workAsShown()
			p.breakDown(id)
		case b.under != nil:
			p.w.Step("stop", p.ID, strconv.Itoa(b.under.ID))
			b.set(nil)
		}
		p.w.Witness.Look()
		p.w.kubeletSees(p.Pod, p.UID)
	}
	if d == 0 {
		do()
		return
	}
	p.w.After(d, func() { p.WhenAwake(do) })
}

// besideStopped is for Stopped: with a hook it waits for the work, without one for as long as the work needs at most.
func (p *Process) besideStopped(ctx context.Context) error {
	if p.w.Profile.HandsOver {
		if err := p.awaitIdle(ctx); err != nil {
			return err
		}
	} else if err := p.awaitReaders(ctx); err != nil {
		return err
	}
	p.w.Alone(func() {
		if !p.Dead && !p.beside.shown.Assigned() {
			p.beside.noted = placement.Set{}
		}
	})
	return nil
}

// awaitReaders blocks for as long as work without a hook needs at most.
func (p *Process) awaitReaders(ctx context.Context) error {
	timer := p.clock.NewTimer(moveDelay)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
	p.Thawed()
	return ctx.Err()
}

// awaitIdle blocks until the work acts under nothing.
func (p *Process) awaitIdle(ctx context.Context) error {
	for {
		var idle <-chan struct{}
		var done bool
		p.w.Alone(func() { idle, done = p.beside.idle, p.beside.under == nil || p.Dead })
		if done {
			p.Thawed()
			return ctx.Err()
		}
		timer := time.NewTimer(time.Minute) // a process that was killed waits for nothing
		select {
		case <-idle:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			p.Thawed()
			return ctx.Err()
		}
		timer.Stop()
	}
}

// besideFenced is for Fenced: the work ends in the time that is left.
func (p *Process) besideFenced(by time.Duration) {
	p.w.Alone(func() {
		if p.Dead {
			return
		}
		b := p.beside
		b.shown.State, b.shown.ID, b.shown.Epoch = identity.StateFenced, identity.None, 0
		p.said.identity = b.shown
		p.said.complete(p.divides)
		b.showShares(&p.said)
		if b.under == nil {
			return
		}
		d := p.w.Dice("fence", p.ID, strconv.Itoa(b.turns))
		left := time.Duration(float64(by-p.clock.BootTime()) / p.clock.Rate)
		if !p.w.Profile.SlowStop {
			left = d.Span(0, max(0, left))
		}
		under := b.under
		kill := func() {
			if b.under == under {
				p.w.Step("stop", p.ID, strconv.Itoa(under.ID))
				b.set(nil)
				p.follow(0) // it may have been told of an id again meanwhile
			}
		}
		if left <= 0 {
			kill()
			return
		}
		p.w.After(left, func() { p.WhenAwake(kill) })
	})
}

// disk is the Memory of a pod: it outlives its processes.
type disk struct{ p *Process }

// Load implements allocator.Memory.
func (d disk) Load() (saved []byte, err error) {
	d.p.w.Alone(func() { saved = d.p.beside.saved })
	return saved, nil
}

// Save implements allocator.Memory.
func (d disk) Save(b []byte) error {
	d.p.w.Alone(func() {
		if !d.p.Dead {
			d.p.beside.saved = b
		}
	})
	return nil
}
