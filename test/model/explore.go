package model

import (
	"cmp"
	"slices"

	"github.com/idalloc/idalloc/test/model/explore"
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

// search explores every world.
func search(b budget) (r result) {
	m := &model{budget: b, known: map[tenure][]action{}}
	found := explore.New(m.first())
	var own []step32 // the protocol's own steps
	for at, w := range found.Each() {
		switch {
		case !w.two():
		case m.removed > 0 && !w.heard():
			r.moments++
		default:
			return result{states: len(found.Worlds), two: found.History(at, m.what)}
		}
		if m.removed == 0 && m.without != early && w.yields() { // that one finds two at work
			return result{states: len(found.Worlds), yields: found.History(at, m.what)}
		}
		for _, e := range m.next(w) {
			if to := found.Add(at, e.to); !e.fault && b.progress {
				own = append(own, step32{at, to})
			}
		}
	}
	r.states = len(found.Worlds)
	if b.progress {
		r.stuck = stuck(m, found.Worlds, own)
	}
	return r
}

// step32 is a step between two worlds, by their numbers.
type step32 struct{ from, to int32 }

// what names the step between two worlds.
func (m *model) what(from, to world) string {
	steps := m.next(from)
	return steps[slices.IndexFunc(steps, func(e edge) bool { return e.to == to })].String()
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
