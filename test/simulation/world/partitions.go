package world

import (
	"context"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
)

// share is what the program does when it hears on what it may work: it begins with what is new. It goes on with what is to stop until
// unshare returns.
func (p *Process) share(now allocator.Shares) {
	p.w.Alone(func() {
		if p.Dead {
			return
		}
		if p.shares = now; p.working != nil && p.acting.Err() == nil {
			p.workOnShares()
		}
		p.w.Witness.Look()
	})
}

// workOnShares begins with what is new.
func (p *Process) workOnShares() {
	for _, share := range p.shares.Owned {
		for k := range share.Set.All() {
			if _, works := p.parts[k]; works || p.shares.Stopping.Contains(k) {
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
}

// unshare is the program's way to stop the work on some partitions.
func (p *Process) unshare(ctx context.Context, stop allocator.PartitionStop) error {
	var long time.Duration
	p.w.Alone(func() {
		long = min(p.w.Dice("stop", p.ID, "partitions", strconv.Itoa(stop.Number)).Tail(p.w.Profile.Stop), 9*time.Second)
	})
	if !pause(ctx.Done(), long) {
		return ctx.Err()
	}
	p.Thawed()
	p.w.Alone(func() {
		if ctx.Err() != nil || (p.stubborn && !stop.Lost) {
			return // it was told meanwhile what goes on, or nothing stops its work for another id
		}
		for k := range stop.Set.All() {
			if _, works := p.parts[k]; works {
				p.w.Step("leave", p.ID, strconv.Itoa(k))
			}
			delete(p.parts, k)
		}
	})
	return ctx.Err()
}

// Pause has somebody pause the pod's work on partitions, or end that. The processes of the pod that start later hear of it, too.
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

// Divides reports whether the process works on partitions.
func (p *Process) Divides() bool { return p.divides }

// Stubborn reports whether the process yields no partitions.
func (p *Process) Stubborn() bool { return p.stubborn }

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
