package agent

import (
	"context"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// partStop is a stop of the work on some partitions.
type partStop struct {
	set placement.Set
	// number is the one by which the program knows this stop.
	number int
	// since is when the files had ceased to name the partitions at the latest.
	since time.Time
}

// parts is what the allocator says about partitions. The agent's lock guards it.
type parts struct {
	// now is what it said last. known is false before it says something about the id that it published last.
	now   allocator.Shares
	known bool
	// lost are partitions that the pod has lost, and on which the work is to stop, by the allocator's number of the stop.
	lost map[int]placement.Set
	// seen is the number of the allocator's last stop that was shown, and numbers are those by which the program knows its stops.
	seen    int
	numbers map[int]int
	// shown is closed and replaced when seen grows.
	shown chan struct{}
}

// stops numbers the stops that the program is told of, those of the whole id and those of some partitions. The agent's lock guards it.
type stops struct {
	last int
	// save keeps the last number for the next process of the pod, before the program can know it. It may be nil.
	save func(number int) error
	// numbered says that drains of the id have numbers, too, and told that the identity shows them. drain is that of the one under way, 0
	// if there is none.
	numbered, told bool
	drain          int
}

func (s *stops) next() (int, error) {
	s.last++
	if s.save == nil {
		return s.last, nil
	}
	return s.last, s.save(s.last)
}

// of returns the identity with the number of the drain, which it draws when the drain begins.
func (s *stops) of(id identity.Identity) (identity.Identity, error) {
	if id.State != identity.StateDraining || !s.numbered {
		s.drain = 0
		return id, nil
	}
	if s.drain == 0 {
		var err error
		if s.drain, err = s.next(); err != nil {
			return id, err
		}
	}
	if s.told {
		id.Stop = s.drain
	}
	return id, nil
}

// workOnPartitions has the allocator work on partitions. stop blocks until the work on some of them has stopped. keeps says that nobody
// can know that. left is the identity under which work of an earlier process of the pod may go on.
func (a *agent) workOnPartitions(keeps bool, left identity.Identity, stop func(context.Context, partStop) error) {
	a.parts = &parts{lost: map[int]placement.Set{}, numbers: map[int]int{}, shown: make(chan struct{})}
	a.o.Allocator.Partitions = &allocator.Partitions{
		Publish: a.publishShares, Keeps: keeps,
		Left: func(uid string) placement.Set {
			if a.dir == nil || a.dir.Pod() != uid { // without POD_UID nobody knew it before: an earlier pod of the same name may have left the files
				return placement.Set{}
			}
			return left.Partitions.Owned().Union(left.Partitions.Stopping())
		},
		Stop: func(ctx context.Context, s allocator.PartitionStop) error { return a.stopPart(ctx, s, stop) },
	}
}

// pausing passes on when the work on partitions is to pause, and when it is to go on. The last wish counts.
type pausing struct {
	mu     sync.Mutex
	wishes chan bool
}

func newPausing() *pausing { return &pausing{wishes: make(chan bool, 1)} }

// pause begins a pause of the work on partitions, or ends it.
func (p *pausing) pause(paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.wishes: // nobody has taken it in
	default:
	}
	p.wishes <- paused
}

// publishShares implements allocator.Partitions.Publish. If there is no id any more, the identity that says so is about to follow. Until then
// everything shows what it showed: work may go on there, and the next process of the pod has to know of it.
func (a *agent) publishShares(s allocator.Shares) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.parts
	if s.Identity.Assigned() {
		p.now, p.known = s, true
	}
	grown := p.seen < s.Stop
	for ; p.seen < s.Stop; p.seen++ {
		number, err := a.stops.next()
		if err != nil {
			a.fail(err)
			return
		}
		p.numbers[p.seen+1] = number
	}
	if s.Identity.Assigned() {
		a.showNext()
	}
	if grown {
		close(p.shown)
		p.shown = make(chan struct{})
	}
}

// stopPart implements allocator.Partitions.Stop. When it returns nil, the work has stopped, and nothing shows the partitions any more.
func (a *agent) stopPart(ctx context.Context, s allocator.PartitionStop, stop func(context.Context, partStop) error) error {
	part, err := a.awaitShown(ctx, s)
	if err != nil {
		return err
	}
	if err = stop(ctx, part); err != nil && ctx.Err() == nil {
		return err // the allocator asks again
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.parts.numbers, s.Number)
	if _, lost := a.parts.lost[s.Number]; lost {
		delete(a.parts.lost, s.Number)
		a.showNext()
	}
	return err
}

// awaitShown blocks until files and answers show the partitions as stopping. They do not show lost ones as owned any more, and from now
// on as stopping.
func (a *agent) awaitShown(ctx context.Context, s allocator.PartitionStop) (part partStop, err error) {
	p := a.parts
	for {
		a.mu.Lock()
		if p.seen >= s.Number {
			break
		}
		shown := p.shown
		a.mu.Unlock()
		select {
		case <-shown:
		case <-ctx.Done():
			return part, context.Cause(ctx)
		}
	}
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		return part, context.Cause(ctx)
	}
	if _, told := p.lost[s.Number]; s.Lost && !told {
		p.lost[s.Number] = s.Set
		a.showNext()
	}
	return partStop{s.Set, p.numbers[s.Number], time.Now()}, nil
}

// waitSince blocks until the readers of the files have had their time since then. If ctx ends before that, it returns the cause of ctx.
func (r *readers) waitSince(ctx context.Context, since time.Time) error {
	if left := r.delay - time.Since(since); left > 0 && !sleep(ctx, left) {
		return context.Cause(ctx)
	}
	return nil
}

// follow takes in that the allocator has published an identity. It returns false if the allocator is about to say which partitions go
// with it: then everything shows both at once, and the work of an earlier process of the pod goes on undisturbed.
func (p *parts) follow(id identity.Identity) (complete bool) {
	if p == nil || id.Assigned() {
		return p == nil || p.known
	}
	p.known = false
	clear(p.lost)
	return true
}

// of returns the identity with its partitions.
func (p *parts) of(id identity.Identity, last int) identity.Identity {
	if p == nil {
		return id
	}
	stopping := p.now.Stopping
	for _, set := range p.lost {
		stopping = stopping.Union(set)
	}
	shares := make([]identity.Share, 0, len(p.now.Owned))
	for _, s := range p.now.Owned {
		shares = append(shares, identity.Share(s))
	}
	if !id.Assigned() {
		shares, stopping = nil, placement.Set{}
	}
	id.Partitions = identity.PartitionsOf(p.now.Count, shares, stopping, last)
	return id
}
