package world

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// sharesBeside is what work in another program than idalloc does about partitions.
type sharesBeside struct {
	// owned, with their tokens, and stopping are what the files show.
	owned    map[int]int64
	stopping placement.Set
	// noted are the partitions that the files showed last beside an id, while the work on them is not known to have stopped.
	noted placement.Set
	// works are the partitions that the work works on, with their tokens. left is closed and replaced when it leaves some.
	works map[int]int64
	left  chan struct{}
}

// said is what the allocator of a command's process has said last.
type said struct {
	identity identity.Identity
	shares   allocator.Shares
	// known says that shares go with the identity.
	known bool
	// lost are partitions on which work is to stop although the pod has lost them, by the number of the stop.
	lost map[int]placement.Set
}

// complete reports whether the allocator has said all that is to be shown at once. What it said of partitions ends with the id.
func (s *said) complete(divides bool) bool {
	if !s.identity.Assigned() {
		s.known = false
		clear(s.lost)
		return true
	}
	return s.known || !divides
}

// showShares writes the files.
func (b *beside) showShares(s *said) {
	b.owned, b.stopping = map[int]int64{}, placement.Set{}
	if !s.identity.Assigned() {
		if s.identity.State == identity.StateReleased {
			b.noted = placement.Set{}
		}
		return
	}
	b.stopping = s.shares.Stopping
	for _, lost := range s.lost {
		b.stopping = b.stopping.Union(lost)
	}
	b.noted = b.stopping
	for _, share := range s.shares.Owned {
		b.noted = b.noted.Union(share.Set)
		for k := range share.Set.All() {
			b.owned[k] = share.Token
		}
	}
}

// leaveAll ends the work on all partitions.
func (b *beside) leaveAll() {
	if len(b.works) > 0 {
		b.works = nil
		close(b.left)
		b.left = make(chan struct{})
	}
}

// partitionsBeside are the options of the commands: the drain hook tells when work has stopped, and the files what an earlier process
// of the pod may have left. That of run as the container's first process leaves nothing.
func (p *Process) partitionsBeside() *allocator.Partitions {
	o := &allocator.Partitions{
		Publish: p.shareBeside, Stop: p.unshareBeside, Keeps: p.stubborn, Pause: p.pauses,
		InProcess: p.FenceAfter > 0 && p.w.Profile.InProcess, RestsAfterFailures: p.FenceAfter > 0,
	}
	if !o.InProcess {
		var noted placement.Set
		p.w.Alone(func() { noted = p.beside.noted })
		o.Left = func(string) placement.Set { return noted }
	}
	return o
}

// shareBeside is for Partitions.Publish.
func (p *Process) shareBeside(now allocator.Shares) {
	p.w.Alone(func() {
		if p.Dead || !now.Identity.Assigned() { // an identity that says so follows
			return
		}
		if p.said.shares, p.said.known = now, true; p.said.identity.State != "" {
			p.show()
		}
	})
}

// beginBeside begins with what is new.
func (p *Process) beginBeside() {
	b := p.beside
	if b.under == nil || b.under.ID != b.shown.ID || !b.shown.Assigned() {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(b.owned)) {
		token := b.owned[k]
		if now, works := b.works[k]; b.stopping.Contains(k) || (works && now == token) {
			continue
		}
		if b.works == nil {
			b.works = map[int]int64{}
		}
		b.works[k] = token
		p.w.tell(aWorkBegan, p)
		p.w.Step("work on", p.ID, strconv.Itoa(k), strconv.FormatInt(token, 10))
	}
}

// workAsShown begins with what is new and leaves what is to stop, and what the files do not show any more.
func (p *Process) workAsShown() {
	b, leaves := p.beside, false
	for _, k := range slices.Sorted(maps.Keys(b.works)) {
		if _, owned := b.owned[k]; owned && !b.stopping.Contains(k) {
			continue
		}
		p.w.Step("leave", p.ID, strconv.Itoa(k))
		delete(b.works, k)
		leaves = true
	}
	if leaves {
		close(b.left)
		b.left = make(chan struct{})
	}
	p.beginBeside()
	p.w.Witness.Look()
}

// unshareBeside is for Partitions.Stop: with a hook it waits for the work, without one for as long as the work needs at most.
func (p *Process) unshareBeside(ctx context.Context, stop allocator.PartitionStop) error {
	p.w.Alone(func() {
		if p.Dead || ctx.Err() != nil || !stop.Lost {
			return
		}
		if p.said.lost == nil {
			p.said.lost = map[int]placement.Set{}
		}
		p.said.lost[stop.Number] = stop.Set
		p.show() //nolint:contextcheck // the world may start another process after it
	})
	wait := func() error { return p.awaitLeft(ctx, stop.Set) }
	if !p.w.Profile.HandsOver {
		wait = func() error { return p.awaitReaders(ctx) }
	}
	err := wait()
	p.w.Alone(func() { //nolint:contextcheck // the world may start another process after it
		if _, lost := p.said.lost[stop.Number]; lost && !p.Dead {
			delete(p.said.lost, stop.Number)
			p.show()
		}
	})
	return err
}

// awaitLeft blocks until the work works on none of the partitions.
func (p *Process) awaitLeft(ctx context.Context, set placement.Set) error {
	for {
		var left <-chan struct{}
		done := true
		p.w.Alone(func() {
			left = p.beside.left
			for k := range p.beside.works {
				done = done && !set.Contains(k)
			}
			done = done || p.Dead
		})
		if done {
			p.Thawed()
			return ctx.Err()
		}
		timer := time.NewTimer(time.Minute) // a process that was killed waits for nothing
		select {
		case <-left:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			p.Thawed()
			return ctx.Err()
		}
	}
}
