package world

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/placement"
)

// witnessed is for Stop: it tells the witness of a stop and of its end, and waits for work that hangs.
func (p *Process) witnessed(stop func(context.Context, allocator.Stop) error) func(context.Context, allocator.Stop) error {
	return func(ctx context.Context, s allocator.Stop) error {
		p.w.Alone(func() { p.w.Witness.Asked(p, s) })
		defer p.w.Alone(func() { p.w.Witness.Answered(p, s) })
		for p.hangs(ctx, &s) {
			pause(ctx.Done(), time.Second)
			p.Thawed()
		}
		return stop(ctx, s)
	}
}

// hangs reports whether work hangs that is to stop. The rest stops. Work beside another program follows the files.
func (p *Process) hangs(ctx context.Context, stop *allocator.Stop) (hangs bool) {
	p.w.Alone(func() {
		if ctx.Err() != nil || p.Dead || p.beside != nil {
			return
		}
		going := stop.Partitions
		if stop.All {
			going = placement.Of(slices.Sorted(maps.Keys(p.parts))...)
		}
		if stays := p.w.hanging(going.Intersect(placement.Of(slices.Sorted(maps.Keys(p.parts))...))); !stays.Empty() {
			if hangs = true; stop.All {
				p.leave(going.Minus(stays))
			} else {
				p.leaveOf(stop, going.Minus(stays))
			}
		}
	})
	return hangs
}

// hanging are those of the partitions on which work does not stop.
func (w *World) hanging(of placement.Set) (set placement.Set) {
	for k := range w.Hangs {
		if of.Contains(k) {
			set = set.Union(placement.Of(k))
		}
	}
	return set
}

// leaveOf ends the work on some partitions of a stop, and says so. The stop is about the others from then on: work on these may begin again before it
// ends.
func (p *Process) leaveOf(stop *allocator.Stop, set placement.Set) {
	if set.Empty() {
		return
	}
	p.leave(set)
	p.saysLeft(stop, set)
}

// saysLeft says that no work is on some partitions of a stop any more.
func (p *Process) saysLeft(stop *allocator.Stop, set placement.Set) {
	stop.Partitions = stop.Partitions.Minus(set)
	p.w.Witness.Left(p, stop.Number, set)
	stop.Stopped(set)
}
