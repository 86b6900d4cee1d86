package world

import (
	"context"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// runMember is a program that works on partitions, as with idalloc.RunPartitions.
func (p *Process) runMember(ctx context.Context, o allocator.Options) error {
	o.Publish, o.Stop, o.Fenced, o.HandsOver = p.heardAsMember, p.witnessed(p.stopAsMember), func(time.Duration) { p.w.Alone(p.fence) }, !p.stubborn
	alloc, err := allocator.New(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil // it was told to end
		}
		return err
	}
	broken := make(chan struct{})
	p.w.Alone(func() { p.alloc, p.broken = alloc, broken })
	loop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- alloc.Run(loop) }()
	byItself := false
	select {
	case err = <-ran:
		p.w.Alone(p.stop)
		return err
	case <-broken:
		byItself = true
	case <-ctx.Done():
		p.w.Alone(func() { p.leaving = true })
		p.stopping()
	}
	p.w.Alone(func() { //nolint:contextcheck // the world may start another process after it
		p.leaving = true
		p.stop()
	})
	cancel()
	<-ran //nolint:errcheck // it ends because of cancel
	release, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer done()
	_ = alloc.Release(release, byItself) // what is not released comes free with the pod
	if byItself {
		return errBroken
	}
	return nil
}

// heardAsMember is for Publish.
func (p *Process) heardAsMember(id identity.Identity) {
	p.w.Alone(func() {
		if !p.Dead {
			p.publishes(id)
		}
		if p.Dead || p.leaving {
			return
		}
		p.w.Step("told", p.ID, string(id.State), strconv.Itoa(id.ID), strconv.Itoa(id.Count), strconv.FormatInt(id.Token, 10), id.Partitions.Owned().String())
		switch {
		case id.State == identity.StateFenced:
			p.waits = nil
			p.fence()
		case !id.Assigned(): // Stop says so
			p.waits = nil
		case p.fencing:
			p.waits = &id
		default:
			p.actAs(id)
		}
		p.w.Witness.Look()
	})
}

// actAs has the work act under an identity, and on its partitions. It continues what is to stop until it is told to, unless idalloc does not
// ask whether it has stopped.
func (p *Process) actAs(id identity.Identity) {
	if p.working == nil {
		p.slept = false
		p.begin(id)
		p.breakApart(id)
	}
	p.working = &id
	for _, share := range id.Partitions.Shares() {
		for k := range share.Set.All() {
			if _, works := p.parts[k]; works {
				continue
			}
			if p.parts == nil {
				p.parts = map[int]int64{}
			}
			p.parts[k] = share.Token
			p.w.tell(aWorkBegan, p)
			p.w.Step("work on", p.ID, strconv.Itoa(k), strconv.FormatInt(share.Token, 10))
		}
	}
	if p.stubborn {
		for k := range p.parts {
			if !id.Partitions.Owned().Contains(k) {
				delete(p.parts, k)
			}
		}
	}
}

// fence ends the work because there is no contact: it has ten seconds. What it is told meanwhile waits.
func (p *Process) fence() {
	if p.Dead || p.working == nil || p.fencing {
		return
	}
	p.fencing = true
	p.w.After(p.stopTime("fence"), func() {
		p.WhenAwake(func() {
			p.stop()
			p.fencing = false
			if id := p.waits; id != nil && !p.leaving && !p.Dead {
				p.waits = nil
				p.actAs(*id)
				p.w.Witness.Look()
			}
		})
	})
}

// stopTime draws how long the work needs to stop.
func (p *Process) stopTime(why string) time.Duration {
	p.stops++
	d := p.w.Dice("stop", p.ID, why, strconv.Itoa(p.stops))
	if p.w.Profile.SlowStop {
		return d.Span(9*time.Second, 9700*time.Millisecond) // its clock may be fast
	}
	return min(d.Tail(p.w.Profile.Stop), 9*time.Second)
}

// stopAsMember is for Stop.
func (p *Process) stopAsMember(ctx context.Context, stop allocator.Stop) error {
	var long time.Duration
	p.w.Alone(func() {
		if long = p.stopTime("asked"); p.stubborn {
			long = 0 // the work asks before each step
		}
	})
	if long > 0 && !stop.All && !p.leaveOne(ctx, &stop, long/2) || long > 0 && !pause(ctx.Done(), long) {
		return ctx.Err()
	}
	p.Thawed()
	p.w.Alone(func() {
		switch {
		case ctx.Err() != nil:
		case stop.All:
			p.stop() //nolint:contextcheck // the world may start another process after it
		default:
			p.leave(stop.Partitions)
		}
	})
	return ctx.Err()
}

// leaveOne ends the work on one of the partitions after a while, and says so: others have that one while the work on the rest continues. It returns false
// if the stop is called off.
func (p *Process) leaveOne(ctx context.Context, stop *allocator.Stop, after time.Duration) bool {
	if !pause(ctx.Done(), after) {
		return false
	}
	p.Thawed()
	p.w.Alone(func() {
		for k := range stop.Partitions.All() {
			if ctx.Err() == nil {
				p.leaveOf(stop, placement.Of(k))
			}
			return
		}
	})
	return ctx.Err() == nil
}

// leave ends the work on some partitions.
func (p *Process) leave(set placement.Set) {
	for k := range set.All() {
		if _, works := p.parts[k]; works {
			p.w.Step("leave", p.ID, strconv.Itoa(k))
			delete(p.parts, k)
		}
	}
}

// breakApart has the program of a broken revision end by itself, or its process die.
func (p *Process) breakApart(id identity.Identity) {
	after, dies, breaks := p.breaks(id)
	if !breaks {
		return
	}
	p.w.After(after, func() {
		switch {
		case p.broken == nil || !p.Runs():
		case dies:
			p.w.Kill(p)
		default:
			close(p.broken)
			p.broken = nil
		}
	})
}

// Pause has a person pause the pod's work on partitions, or end that. The processes of the pod that start later hear of it, too.
func (w *World) Pause(pod string, paused bool) {
	if w.paused == nil {
		w.paused = map[string]bool{}
	}
	w.paused[pod] = paused
	for _, p := range w.Processes {
		if p.Pod == pod && p.pauses != nil {
			p.hearPause(paused)
		}
	}
}

// hearPause passes on the last wish.
func (p *Process) hearPause(paused bool) {
	select {
	case <-p.pauses:
	default:
	}
	p.pauses <- paused
}

// IsPaused reports whether a pod's work on partitions is paused.
func (w *World) IsPaused(pod string) bool { return w.paused[pod] }

// Divides reports whether the process works on partitions.
func (p *Process) Divides() bool { return p.divides }

// Stubborn reports whether the process yields no partitions.
func (p *Process) Stubborn() bool {
	return p.divides && (p.stubborn || p.beside != nil && !p.w.Profile.HandsOver)
}

// Working are the partitions that the process works on at this moment, with their tokens.
func (p *Process) Working() map[int]int64 {
	switch {
	case p.Belief() == nil:
		return nil
	case p.beside != nil:
		return p.beside.works
	}
	return p.parts
}

// WorkOn has a puppet work on partitions, each with its token.
func (p *Process) WorkOn(parts map[int]int64) { p.divides, p.parts = true, parts }
