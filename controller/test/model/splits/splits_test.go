package splits

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

// explore visits every world, the nearest first. It returns the number of worlds, and the first history that ends badly.
func explore(b budget, most int) (states int, bad []string) {
	m := &model{budget: b, decided: map[known]done{}}
	first := m.first()
	index := map[world]struct{}{first: {}}
	worlds, from, whats := []world{first}, []int32{-1}, []string{""}
	for at := int32(0); int(at) < len(worlds) && len(worlds) < most; at++ {
		w := worlds[at]
		if why := m.bad(&w); why != "" {
			bad = []string{why}
			for ; from[at] >= 0; at = from[at] {
				bad = append(bad, whats[at])
			}
			slices.Reverse(bad)
			return len(worlds), bad
		}
		for _, e := range m.next(w) {
			if _, seen := index[e.to]; !seen {
				index[e.to] = struct{}{}
				worlds, from, whats = append(worlds, e.to), append(from, at), append(whats, e.what)
			}
		}
	}
	return len(worlds), nil
}

// deep has more and larger worlds explored.
var deep = flag.Bool("deep", false, "explore larger worlds, for minutes") //nolint:gochecknoglobals // a flag

const most = 20_000_000

func TestNoTwoRunUnderOneID(t *testing.T) {
	worlds := map[string]budget{
		"in mid-rollout":   {controllers: 1, deletes: 1, creates: 1},
		"a pod ends":       {controllers: 1, deletes: 1, creates: 1, ends: 1},
		"one runs in each": {start: 1, controllers: 1, deletes: 1, creates: 1},
		"a steady state":   {start: 2, controllers: 1, deletes: 1, creates: 1, ends: 1},
		"ids are mixed":    {start: 3, controllers: 1, deletes: 1, creates: 1},
		"a person adopts":  {controllers: 1, deletes: 1, creates: 1, adopts: 1},
		"an agent waits":   {start: 1, controllers: 1, agents: 1, deletes: 1, creates: 1},
		"two controllers":  {start: 2, controllers: 2, deletes: 1, creates: 1},
	}
	if *deep {
		worlds = map[string]budget{
			"one runs in each, a pod ends":    {start: 1, controllers: 1, deletes: 1, creates: 1, ends: 1},
			"ids are mixed, a pod ends":       {start: 3, controllers: 1, deletes: 1, creates: 1, ends: 1},
			"in mid-rollout, two controllers": {controllers: 2, deletes: 1, creates: 1},
			"two pods end":                    {controllers: 1, deletes: 1, creates: 1, ends: 2},
			"it goes twice":                   {start: 2, controllers: 1, deletes: 2, creates: 2},
			"a person adopts, and a pod ends": {start: 1, controllers: 1, deletes: 1, creates: 1, adopts: 2},
			"an agent waits, and a pod ends":  {start: 1, controllers: 1, agents: 1, deletes: 1, creates: 1, ends: 1},
		}
	}
	for what, b := range worlds {
		t.Run(what, func(t *testing.T) {
			states, bad := explore(b, most)
			if bad != nil {
				t.Errorf("after %d states:\n%s", states, strings.Join(bad, "\n"))
			}
			t.Logf("%d states", states)
		})
	}
}

func TestEachClauseThatIsLeftOutIsMissed(t *testing.T) {
	for without, b := range map[clause]budget{
		neverFrozen: {start: 1, controllers: 1, deletes: 1, creates: 1, ends: 1},
	} {
		t.Run(string(without), func(t *testing.T) {
			b.without = without
			states, bad := explore(b, most)
			if bad == nil {
				t.Fatalf("no state out of %d shows it", states)
			}
			t.Logf("%d states\n%s", states, strings.Join(bad, "\n"))
		})
	}
}
