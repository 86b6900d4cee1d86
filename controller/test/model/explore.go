package model

import "slices"

// result is what an exploration found.
type result struct {
	states int
	// two is the shortest history in which two programs run under one id, nil if there is none.
	two []string
	// moments counts the worlds in which two do so after a receipt was removed or a pod changed hands, which breaks what the proof assumes.
	moments int
	// stuck says how the first world that does not come to rest as it should does not, and after what.
	stuck []string
}

// explore visits every world, the nearest first.
func explore(b budget) (r result) {
	m := newModel(b)
	first := m.first()
	index := map[world]int32{first: 0}
	worlds := []world{first}
	from := []int32{-1}
	for at := int32(0); int(at) < len(worlds); at++ {
		w := worlds[at]
		switch {
		case !m.two(&w):
		case w.removed < m.removed, m.adopted && !w.pods[0].foreign && w.pods[0].generation == 0:
			r.moments++
		default:
			return result{states: len(worlds), two: history(m, worlds, from, at)}
		}
		if slices.Contains([]step{whole, noRetreat, noConfirm, noRemoval}, m.without) {
			if problem := m.settles(w); problem != "" {
				return result{states: len(worlds), stuck: append(history(m, worlds, from, at), problem)}
			}
		}
		for _, e := range m.next(w) {
			if e.knowing {
				return result{states: len(worlds), two: append(history(m, worlds, from, at), e.what+", and knows better")}
			}
			if _, seen := index[e.to]; seen {
				continue
			}
			index[e.to] = int32(len(worlds)) //nolint:gosec // they would not fit into memory
			worlds, from = append(worlds, e.to), append(from, at)
		}
	}
	r.states = len(worlds)
	return r
}

// history returns the steps to a world.
func history(m *model, worlds []world, from []int32, at int32) (steps []string) {
	for ; from[at] >= 0; at = from[at] {
		for _, e := range m.next(worlds[from[at]]) {
			if e.to == worlds[at] {
				steps = append(steps, e.what)
				break
			}
		}
	}
	slices.Reverse(steps)
	return steps
}
