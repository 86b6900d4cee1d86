package plan

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// Somebody writes "fence-after: 1h" beside a map.
func TestForeignFenceAfter(t *testing.T) {
	fenced := func(d time.Duration) func(*Pod) {
		return func(p *Pod) { p.Receipt.FenceAfter = d }
	}
	for name, tc := range map[string]struct {
		in    Input
		fence time.Duration
	}{
		"counts for nothing without strict mode": {Input{Pods: []Pod{pod("a", 2, holds(0)), pod("b", 1)}, Me: "b"}, 0},
		"does not lengthen the planner's own":    {Input{Pods: []Pod{pod("a", 2, holds(0)), pod("b", 1)}, Me: "b", FenceAfter: time.Minute}, time.Minute},
		"does not lengthen a receipt's": {
			Input{Pods: []Pod{pod("a", 2, holds(0), fenced(time.Minute)), pod("b", 1)}, Me: "b"}, time.Minute,
		},
		"counts where a receipt's is unreadable": {Input{Pods: []Pod{pod("a", 2, holds(0), fenced(-1)), pod("b", 1)}, Me: "b"}, time.Hour},
		"counts for a sweep":                     {Input{Pods: []Pod{pod("a", 2, holds(0))}}, time.Hour},
		"is no foreign one on a clean map":       {Input{Pods: []Pod{pod("a", 2, holds(0)), pod("b", 1)}, Me: "b", Clean: true}, time.Hour},
		"is idalloc's own on a map of which somebody else changed the rest": {
			Input{Pods: []Pod{pod("a", 2, holds(0)), pod("b", 1)}, Me: "b", FenceOurs: true}, time.Hour,
		},
		"may be ours where nothing is tracked": {Input{Pods: []Pod{pod("a", 2, holds(0)), pod("b", 1)}, Me: "b", Untracked: true}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			in.Count, in.Now = 2, t0
			in.State = assignment.State{Slots: slots{0: "a"}, UIDs: slots{0: assignment.ShortUID("uid-a")}, FenceAfter: time.Hour, Epoch: 100}
			d := Plan(in)
			if d.FenceAfter != tc.fence {
				t.Errorf("fence-after is %s, want %s", d.FenceAfter, tc.fence)
			}
			if tc.fence == 0 && (d.Next == nil || d.Next.Slots[1] != "b" || d.Next.FenceAfter != 0) {
				t.Errorf("the new pod waits: %+v", d.Next)
			}
		})
	}
}
