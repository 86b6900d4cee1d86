package inspect

import (
	"slices"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// spec.ordinals.start was changed from 0 to 1. Kubernetes is to remove a, and has made x, which is not Ready without an id.
func TestPodsThatAStatefulSetCannotRemove(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(n *snapshot)
		want   []brief
	}{
		"it keeps an id":                 {want: []brief{{Condemned, -1, "a"}}},
		"it hands its id over":           {change: func(n *snapshot) { n.handOver() }},
		"it is being deleted":            {change: func(n *snapshot) { n.edit("a", func(p *pod) { p.Terminating = true }) }},
		"the other is Ready without one": {change: func(n *snapshot) { n.edit("x", func(p *pod) { p.ready = true }) }},
		"it gave its id up": {change: func(n *snapshot) {
			n.lock("x", 0)
			n.name(0, "x")
			n.edit("a", func(p *pod) { p.Receipt = gaveUp() })
		}},
		"two gave their ids up, and none is Ready": {
			change: func(n *snapshot) {
				n.owner.Count, n.owner.Record.State.Slots = 1, assignment.Slots{0: "a"}
				n.now, n.changed = time.Unix(1000, 0), time.Unix(900, 0)
				for _, name := range []string{"b", "c", "x"} {
					n.edit(name, func(p *pod) { p.Condemned, p.Receipt = true, gaveUp() })
				}
				n.edit("a", func(p *pod) { p.Condemned = false })
			},
			want: []brief{{CondemnedIdle, -1, "b"}},
		},
	} {
		n := settledPods(3)
		n.owner.Kind = store.StatefulSet
		n.add("x")
		for name := range n.pods {
			n.edit(name, func(p *pod) { p.controller = n.owner.Name })
		}
		n.edit("x", func(p *pod) { p.Receipt = waiting() })
		n.edit("a", func(p *pod) { p.Condemned = true })
		if tc.change != nil {
			tc.change(&n)
		}
		if got := briefs(reported(n)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: found %v, want %v", name, got, tc.want)
		}
	}
}
