package model

import (
	"slices"

	"github.com/idalloc/idalloc/test/model/explore"
)

// result is what an exploration found.
type result struct {
	states int
	// two is the shortest history in which two programs run under one id, nil if there is none.
	two []string
	// moments counts the worlds in which two do so after a receipt was removed or a pod changed hands, which breaks what the proof assumes.
	moments int
	// stuck is the history of the first world that does not come to rest as it should, with the reason at its end.
	stuck []string
}

// search explores every world.
func search(b budget) (r result) {
	m := newModel(b)
	found := explore.New(m.first())
	for at, w := range found.Each() {
		switch {
		case !m.two(&w):
		case w.removed < m.removed, m.adopted && !w.pods[0].foreign && w.pods[0].generation == 0:
			r.moments++
		default:
			return result{states: len(found.Worlds), two: found.History(at, m.what)}
		}
		if slices.Contains([]step{whole, noRetreat, noConfirm, noRemoval}, m.without) {
			if problem := m.settles(w); problem != "" {
				return result{states: len(found.Worlds), stuck: append(found.History(at, m.what), problem)}
			}
		}
		for _, e := range m.next(w) {
			if e.knowing {
				return result{states: len(found.Worlds), two: append(found.History(at, m.what), e.what+", and knows better")}
			}
			found.Add(at, e.to)
		}
	}
	r.states = len(found.Worlds)
	return r
}

// what names the step between two worlds.
func (m *model) what(from, to world) string {
	steps := m.next(from)
	return steps[slices.IndexFunc(steps, func(e edge) bool { return e.to == to })].what
}
