package hook

import (
	"context"
	"fmt"
	"sync"

	"github.com/idalloc/idalloc/pkg/placement"
)

// Parts collects the program's reports that it has stopped its work on some partitions. For each partition that must stop, it knows the first stop that named
// it. A report names the last stop that the program had heard of. The report counts for a partition that had to stop then and has had to stop ever since,
// because the program cannot have begun to work on it again. The zero value has no partitions. It is safe for concurrent use.
type Parts struct {
	mu sync.Mutex
	// stops holds the partitions that must stop, by the first stop that named them.
	stops map[int]placement.Set
	// all is the union of stops. heard holds the partitions of all that the program has reported.
	all, heard placement.Set
	// last is the number of the last stop.
	last int
	// news is closed and replaced when heard grows.
	news chan struct{}
}

// Show sets which partitions must stop, and the number of the last stop. Call it before the program can know that. It forgets the report for a partition that
// no longer has to stop, because the program may work on it again.
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

// Drained reports that the program has stopped its work on the partitions, and that stop was the last stop it had heard of. A second report is no error.
// Drained does not block. The error wraps ErrNothingToDrain if some of the partitions need not stop, or have had to only since a later stop. Then nothing of
// the report counts.
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

// Wait blocks until the program has reported all of the partitions. Each time some are reported, it calls stopped with them. If ctx ends earlier, it returns
// the cause of ctx.
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
