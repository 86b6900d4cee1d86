package hook

import (
	"context"
	"fmt"
	"sync"

	"github.com/idalloc/idalloc/pkg/placement"
)

// Parts passes on the program's reports that it has stopped its work on some partitions. It knows for each partition that is to stop
// which stop was the first to name it. A report names the last stop that the program had heard of. So it counts for a partition that was
// to stop then, and has been ever since: the program cannot have begun to work on it again. The zero value has none. It is safe for
// concurrent use.
type Parts struct {
	mu sync.Mutex
	// stops are the partitions that are to stop, by the stop that was the first to name them.
	stops map[int]placement.Set
	// all is the union of them. heard are those of them that the program has reported.
	all, heard placement.Set
	// last is the number of the last stop.
	last int
	// news is closed and replaced when heard grows.
	news chan struct{}
}

// Show says which partitions are to stop, and the number of the last stop. Call it before the program can know that. A partition that is
// not to stop any more may be worked on again, so its report is forgotten.
func (p *Parts) Show(stopping placement.Set, last int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := stopping.Minus(p.all)
	for number, set := range p.stops {
		if p.stops[number] = set.Intersect(stopping); p.stops[number].Empty() {
			delete(p.stops, number)
		}
	}
	if p.stops == nil {
		p.stops = map[int]placement.Set{}
	}
	if !fresh.Empty() {
		p.stops[last] = p.stops[last].Union(fresh)
	}
	p.all, p.heard, p.last = stopping, p.heard.Intersect(stopping), last
}

// Drained reports that the program, which had heard of this stop and of none after it, has stopped its work on the partitions. A second
// report is no error. Drained does not block. The error wraps ErrNothingToDrain if some of the partitions are not to stop, or only
// since a later stop. Then nothing of the report counts.
func (p *Parts) Drained(set placement.Set, stop int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stop > p.last {
		return fmt.Errorf("%w by stop %d: the last stop has the number %d", ErrNothingToDrain, stop, p.last)
	}
	var asked placement.Set
	for number, of := range p.stops {
		if number <= stop {
			asked = asked.Union(of)
		}
	}
	if other := set.Minus(asked); !other.Empty() {
		return fmt.Errorf("%w by stop %d of partitions %s: it was called off, or is over, or they are to stop since a later one; "+
			"post what is stopping, and the number of the stop, as identity.json has them now", ErrNothingToDrain, stop, other)
	}
	p.heard = p.heard.Union(set)
	if p.news != nil {
		close(p.news)
		p.news = nil
	}
	return nil
}

// Wait blocks until the program has reported all of the partitions, and calls stopped with those that it has reported. If ctx ends before that, it
// returns the cause of ctx.
func (p *Parts) Wait(ctx context.Context, set placement.Set, stopped func(placement.Set)) error {
	for {
		p.mu.Lock()
		heard := set.Intersect(p.heard)
		if p.news == nil {
			p.news = make(chan struct{})
		}
		news := p.news
		p.mu.Unlock()
		if !heard.Empty() {
			stopped(heard)
		}
		if set = set.Minus(heard); set.Empty() {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
