package world

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/placement"
)

// leaveAll ends the work on all partitions.
func (b *beside) leaveAll() {
	if len(b.works) > 0 {
		b.works = nil
		close(b.left)
		b.left = make(chan struct{})
	}
}

// owned are the partitions that the files show, with their tokens. Those on which work is to stop are not among them.
func (b *beside) owned() map[int]int64 {
	owned := map[int]int64{}
	for _, share := range b.shown.Partitions.Shares() {
		for k := range share.Set.All() {
			owned[k] = share.Token
		}
	}
	return owned
}

// beginBeside begins with what is new.
func (p *Process) beginBeside() {
	b := p.beside
	if b.under == nil || b.under.ID != b.shown.ID || !b.shown.Assigned() {
		return
	}
	owned := b.owned()
	for _, k := range slices.Sorted(maps.Keys(owned)) {
		token := owned[k]
		if now, works := b.works[k]; works && now == token {
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
	b, leaves, owned := p.beside, false, p.beside.owned()
	for _, k := range slices.Sorted(maps.Keys(b.works)) {
		if _, stays := owned[k]; stays {
			continue
		}
		if p.w.Hangs[k] && p.w.Profile.HandsOver { // work without a hook is not asked, so it may not hang
			p.lookAgain()
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

// lookAgain leaves later what hangs now, if the files do not show it by then.
func (p *Process) lookAgain() {
	b := p.beside
	if b.looks {
		return
	}
	b.looks = true
	p.w.After(time.Second, func() {
		p.WhenAwake(func() {
			if b.looks = false; b.under != nil && b.under.ID == b.shown.ID {
				p.workAsShown()
			}
		})
	})
}

// awaitLeft blocks until the work works on none of the partitions. It says of each which it has left.
func (p *Process) awaitLeft(ctx context.Context, stop allocator.Stop) error {
	for {
		var left <-chan struct{}
		done := true
		p.w.Alone(func() {
			left = p.beside.left
			gone := stop.Partitions.Minus(placement.Of(slices.Sorted(maps.Keys(p.beside.works))...))
			done = gone.Equal(stop.Partitions) || p.Dead
			if !done && !gone.Empty() && ctx.Err() == nil {
				p.saysLeft(&stop, gone)
			}
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
