package main

import (
	"slices"
	"sync"
	"time"
)

const (
	// stall is how long a partition rests at least where its rest counts although it stays with its member. A busy machine can make all
	// of them rest for less.
	stall = time.Second
	// fresh is how long ago a partition that is worked on was worked on last.
	fresh = 250 * time.Millisecond
	// calm is how long no partition has moved or rested when all is settled.
	calm = time.Second
)

// book notes who works on which partition.
type book struct {
	mu    sync.Mutex
	marks []mark
	gaps  []gap
}

// mark is when a partition was worked on last, by whom, and since when without a gap.
type mark struct {
	member    string
	at, since time.Time
}

// gap is a time in which no pod worked on a partition, before it moved, or although it did not.
type gap struct {
	moved bool
	long  time.Duration
}

func newBook(partitions int) *book { return &book{marks: make([]mark, partitions)} }

// worked notes that a member worked on a partition just now.
func (b *book) worked(partition int, member string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &b.marks[partition]
	long := now.Sub(m.at)
	switch {
	case m.member == "":
		m.since = now
	case m.member != member || long >= stall:
		b.gaps = append(b.gaps, gap{moved: m.member != member, long: long})
		m.since = now
	}
	m.member, m.at = member, now
}

// settled says whether these members, and no others, work on all partitions. If they are to be level, no one has two partitions more than another.
func (b *book) settled(members []string, level bool, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.marks {
		if !slices.Contains(members, m.member) || now.Sub(m.at) > fresh || now.Sub(m.since) < calm {
			return false
		}
	}
	counts := b.counts(members)
	return !level || slices.Max(counts)-slices.Min(counts) <= 1
}

// counts returns how many partitions each member has. The caller must hold the lock.
func (b *book) counts(members []string) []int {
	counts := make([]int, len(members))
	for _, m := range b.marks {
		if i := slices.Index(members, m.member); i >= 0 {
			counts[i]++
		}
	}
	return counts
}

// busiest returns the member with the most partitions, and how many these are.
func (b *book) busiest(members []string) (string, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := b.counts(members)
	most := slices.Max(counts)
	return members[slices.Index(counts, most)], most
}

// take returns the gaps since it was called last.
func (b *book) take() []gap {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.gaps
	b.gaps = nil
	return taken
}
