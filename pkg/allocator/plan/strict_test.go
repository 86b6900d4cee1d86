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
		"counts for nothing to a sweep":          {Input{Pods: []Pod{pod("a", 2, holds(0))}}, 0},
		"is no foreign one on a clean map":       {Input{Pods: []Pod{pod("a", 2, holds(0)), pod("b", 1)}, Me: "b", Trust: assignment.Clean}, time.Hour},
		"is idalloc's own on a map of which somebody else changed the rest": {
			Input{Pods: []Pod{pod("a", 2, holds(0)), pod("b", 1)}, Me: "b", FenceOurs: true}, time.Hour,
		},
		"may be ours where nothing is tracked": {Input{Pods: []Pod{pod("a", 2, holds(0)), pod("b", 1)}, Me: "b", Trust: assignment.Untracked}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			in.Count, in.Now = 2, t0
			in.State = assignment.State{Slots: slots{0: "a"}, UIDs: slots{0: assignment.ShortUID("uid-a")}, FenceAfter: time.Hour, Epoch: 100}
			d := Plan(in)
			if d.FenceAfter != tc.fence {
				t.Errorf("fence-after is %s, want %s", d.FenceAfter, tc.fence)
			}
			if tc.fence == 0 && tc.in.Me != "" && (d.Next == nil || d.Next.Slots[1] != "b" || d.Next.FenceAfter != 0) {
				t.Errorf("the new pod waits: %+v", d.Next)
			}
		})
	}
}

// A sweep restores a map without knowing whether the workload uses strict mode.
func TestASweepLeavesTheFenceAfterToThePods(t *testing.T) {
	for name, found := range map[string]time.Duration{"somebody wrote an hour": time.Hour, "somebody removed what was there": 0} {
		t.Run(name, func(t *testing.T) {
			state := assignment.State{Slots: slots{0: "a", 1: "gone"}, UIDs: slots{0: assignment.ShortUID("uid-a"), 1: assignment.ShortUID("uid-gone")}, FenceAfter: found, Epoch: 100}
			swept := Plan(Input{Count: 2, State: state, Pods: []Pod{pod("a", 2, holds(0))}, Now: t0}).Next
			if swept == nil || swept.Slots[0] != "a" || swept.FenceAfter != 0 {
				t.Fatalf("the sweep leaves %+v", swept)
			}
			next := Input{Count: 2, State: *swept, Trust: assignment.Clean, Pods: []Pod{pod("a", 2, holds(0)), pod("b", 1)}, Me: "b", Now: t0}
			if d := Plan(next); d.Next.Slots[1] != "b" {
				t.Errorf("without strict mode the new pod waits: %+v", d)
			}
			next.FenceAfter = time.Minute
			if d := Plan(next); d.Next.Slots[1] == "b" || d.Quarantined != 1 {
				t.Errorf("in strict mode the new pod gets a slot that a process without contact may use: %+v", d.Next)
			}
			next.Served = map[int64]bool{swept.Epoch: true}
			if d := Plan(next); d.Next.Slots[1] != "b" {
				t.Errorf("the quarantine does not end: %+v", d)
			}
		})
	}
}
