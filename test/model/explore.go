package model

import (
	"cmp"
	"slices"
)

// result is what an exploration found.
type result struct {
	states int
	// two is the shortest history in which two are at work on one thing, nil if there is none.
	two []string
	// yields is the shortest history in which a pod gives way although its lock says that it holds the slot, nil if there is none.
	yields []string
	// moments counts the worlds in which two are at work on one thing after a client removed a receipt, and neither has heard of it yet.
	moments int
	// stuck counts the worlds from which the pods cannot come to hold all slots any more, without another fault.
	stuck int
}

// explore visits every world, the nearest first.
func explore(b budget) (r result) {
	m := &model{budget: b, known: map[tenure][]action{}}
	first := m.first()
	index := map[world]int32{first: 0}
	worlds := []world{first}
	from := []int32{-1}
	var own []step32 // the protocol's own steps
	for at := int32(0); int(at) < len(worlds); at++ {
		w := worlds[at]
		switch {
		case !w.two():
		case m.removed > 0 && !w.heard():
			r.moments++
		default:
			return result{states: len(worlds), two: history(m, worlds, from, at)}
		}
		if m.removed == 0 && m.without != early && w.yields() { // that one finds two at work
			return result{states: len(worlds), yields: history(m, worlds, from, at)}
		}
		for _, e := range m.next(w) {
			to, seen := index[e.to]
			if !seen {
				to = int32(len(worlds)) //nolint:gosec // they would not fit into memory
				index[e.to] = to
				worlds, from = append(worlds, e.to), append(from, at)
			}
			if !e.fault && b.progress {
				own = append(own, step32{at, to})
			}
		}
	}
	r.states = len(worlds)
	if b.progress {
		r.stuck = stuck(m, worlds, own)
	}
	return r
}

// step32 is a step between two worlds, by their numbers.
type step32 struct{ from, to int32 }

// history returns the steps to a world.
func history(m *model, worlds []world, from []int32, at int32) (steps []string) {
	for ; from[at] >= 0; at = from[at] {
		for _, e := range m.next(worlds[from[at]]) {
			if e.to == worlds[at] {
				steps = append(steps, e.String())
				break
			}
		}
	}
	slices.Reverse(steps)
	return steps
}

// stuck counts the worlds from which no own steps lead to all slots being held. Those in which a pod has few writes left do not count.
func stuck(m *model, worlds []world, own []step32) (n int) {
	slices.SortFunc(own, func(a, b step32) int { return cmp.Compare(a.to, b.to) })
	can := make([]bool, len(worlds))
	var queue []int32
	for i, w := range worlds {
		if m.held(w) {
			can[i] = true
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		into, _ := slices.BinarySearchFunc(own, at, func(s step32, to int32) int { return cmp.Compare(s.to, to) })
		for ; into < len(own) && own[into].to == at; into++ {
			if before := own[into].from; !can[before] {
				can[before] = true
				queue = append(queue, before)
			}
		}
	}
	for i, w := range worlds {
		spare := true
		for _, p := range w.pods[:m.pods] {
			spare = spare && p.wrote+3 < m.writes
		}
		if spare && !can[i] {
			n++
		}
	}
	return n
}
