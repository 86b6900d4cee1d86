package splits

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/test/model/explore"
)

// search explores every world. It returns the number of worlds, and the first history that ends badly.
func search(b budget) (states int, bad []string) {
	m := &model{budget: b, decided: map[known]done{}}
	found := explore.New(m.first())
	for at, w := range found.Each() {
		if why := m.bad(&w); why != "" {
			return len(found.Worlds), append(found.History(at, m.what), why)
		}
		for _, e := range m.next(w) {
			found.Add(at, e.to)
		}
	}
	return len(found.Worlds), nil
}

// what names the step between two worlds.
func (m *model) what(from, to world) string {
	steps := m.next(from)
	return steps[slices.IndexFunc(steps, func(e edge) bool { return e.to == to })].what
}

// deep has more and larger worlds explored.
var deep = flag.Bool("deep", false, "explore larger worlds, for minutes") //nolint:gochecknoglobals // a flag

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
			states, bad := search(b)
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
			states, bad := search(b)
			if bad == nil {
				t.Fatalf("no state out of %d shows it", states)
			}
			t.Logf("%d states\n%s", states, strings.Join(bad, "\n"))
		})
	}
}
