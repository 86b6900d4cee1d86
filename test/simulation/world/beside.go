package world

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
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
	// noted is the identity under which work may go on, as the files keep it for the next process of the pod, and lastStop the number of the
	// last stop.
	noted    identity.Identity
	lastStop int
	// works are the partitions that the work works on, with their tokens. left is closed and replaced when it leaves some.
	works map[int]int64
	left  chan struct{}
	looks bool // it looks again soon whether work has stopped that hangs
}

const (
	// moveDelay is the command watch's default, and noticed the most that work without a hook needs to notice a change of its files.
	moveDelay = time.Second
	noticed   = 900 * time.Millisecond
)

func newBeside() *beside {
	b := &beside{idle: make(chan struct{}), left: make(chan struct{}), noted: identity.Identity{ID: identity.None}}
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

// outlives reports whether the work that this process told of an id continues, even when the process has ended.
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
func (p *Process) runCommand(ctx context.Context, o allocator.Options) error {
	o.Publish, o.Stop, o.HandsOver = p.told, p.witnessed(p.stopBeside), p.w.Profile.HandsOver
	o.FenceLead, o.Fenced, o.RestsAfterFailures = p.FenceAfter/3, p.besideFenced, p.FenceAfter > 0
	p.w.Alone(func() {
		o.LastStop = p.beside.lastStop
		if noted := p.beside.noted; p.FenceAfter == 0 || !p.w.Profile.InProcess {
			o.Left = func(string) identity.Identity { return noted }
		}
	})
	claiming, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer p.Thawed()
	claimed := make(chan error, 1)
	go func() { claimed <- p.claim(claiming, o) }()
	select {
	case err := <-claimed:
		return err
	case <-ctx.Done():
	}
	// Told to end: the work ends first, and the watch of the time lasts until then.
	killed := false
	p.w.Alone(func() { //nolint:contextcheck // the world may start another process after it
		if killed = p.Dead; !killed {
			p.beside.ending = true
			p.follow(p.changeTime())
		}
	})
	if !killed {
		_ = p.awaitIdle(context.WithoutCancel(ctx)) // nothing ends it
	}
	stop()
	if err := <-claimed; killed {
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
		p.w.Step("told", p.ID, string(id.State), strconv.Itoa(id.ID), strconv.Itoa(id.Count), strconv.FormatInt(id.Token, 10), id.Partitions.Owned().String())
		p.publishes(id)
		p.show(id)
	})
}

// show writes the files, and has the work follow them.
func (p *Process) show(id identity.Identity) {
	b := p.beside
	b.shown = id
	switch {
	case id.Assigned():
		b.noted = id
	case id.State == identity.StateReleased:
		b.noted = identity.Identity{ID: identity.None}
	}
	if b.under == nil {
		p.follow(0)
		return
	}
	p.beginBeside()
	p.w.Witness.Look()
	p.follow(p.changeTime())
}

// changeTime draws how long the work needs until it does what it was told.
func (p *Process) changeTime() time.Duration {
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
			p.w.Step("begin", p.ID, strconv.Itoa(id.ID), strconv.Itoa(id.Count), strconv.FormatInt(id.Token, 10))
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

// stopBeside is for Stop: with a hook it waits for the work, without one for as long as the work needs at most.
func (p *Process) stopBeside(ctx context.Context, stop allocator.Stop) (err error) {
	p.w.Alone(func() { p.beside.lastStop = stop.Number })
	switch {
	case !p.w.Profile.HandsOver:
		err = p.awaitReaders(ctx)
	case stop.All:
		err = p.awaitIdle(ctx)
	default:
		err = p.awaitLeft(ctx, stop)
	}
	p.w.Alone(func() {
		if err == nil && stop.All && !p.Dead && !p.beside.shown.Assigned() {
			p.beside.noted = identity.Identity{ID: identity.None}
		}
	})
	return err
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
		if b.shown = b.shown.Without(identity.StateFenced); b.under == nil {
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
