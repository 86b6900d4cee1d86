// Package explore visits every world of a model, the nearest first.
package explore

import (
	"iter"
	"slices"
)

// Search is an exploration.
type Search[W comparable] struct {
	// Worlds are those found so far.
	Worlds []W

	numbers map[W]int32
	from    []int32
}

// New returns an exploration that begins at a world.
func New[W comparable](first W) *Search[W] {
	return &Search[W]{Worlds: []W{first}, numbers: map[W]int32{first: 0}, from: []int32{-1}}
}

// Each visits each world once, with its number. The loop's body adds the worlds that steps lead to from there.
func (s *Search[W]) Each() iter.Seq2[int32, W] {
	return func(yield func(int32, W) bool) {
		for at := int32(0); int(at) < len(s.Worlds); at++ {
			if !yield(at, s.Worlds[at]) {
				return
			}
		}
	}
}

// Add takes a step from a world, and returns the number of the world that it leads to.
func (s *Search[W]) Add(from int32, to W) int32 {
	number, known := s.numbers[to]
	if !known {
		number = int32(len(s.Worlds)) //nolint:gosec // more would not fit into memory
		s.numbers[to] = number
		s.Worlds, s.from = append(s.Worlds, to), append(s.from, from)
	}
	return number
}

// History returns the shortest way to a world. what names a step between two worlds.
func (s *Search[W]) History(at int32, what func(from, to W) string) (steps []string) {
	for ; s.from[at] >= 0; at = s.from[at] {
		steps = append(steps, what(s.Worlds[s.from[at]], s.Worlds[at]))
	}
	slices.Reverse(steps)
	return steps
}
