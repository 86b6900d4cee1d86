package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

func fenced(after time.Duration) func(*Pod) { return func(p *Pod) { p.Receipt.FenceAfter = after } }

// What a plan writes down for strict mode. In all of them the owner says one hour, which nobody's receipt does.
func TestWhatStrictModeWrites(t *testing.T) {
	const epoch = 5
	minute := fenced(time.Minute)
	everybody := []Pod{pod("a", 9, holds(0), minute), pod("b", 9, holds(1), minute)}
	both := slots{0: "a", 1: "b"}
	for name, tc := range map[string]struct {
		in         Input
		quarantine assignment.Quarantine // of the slots 0 to 8; an epoch of 1 stands for the plan's own
		fence      time.Duration
	}{
		"the longest fence-after of those who have a slot": {
			in: Input{Count: 3, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: both}, Pods: everybody}, fence: time.Minute,
		},
		"pods without strict mode do not change it": {
			in: Input{
				Count: 3, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: both}, Pods: []Pod{pod("a", 9, holds(0), minute), pod("b", 9, holds(1))},
			},
			fence: time.Minute,
		},
		"the planner's own, when it gets a slot": {
			in: Input{
				Count: 3, Me: "n", Trust: assignment.Clean, FenceAfter: 2 * time.Minute, State: assignment.State{Slots: both}, Pods: append([]Pod{pod("n", 1)}, everybody...),
			},
			fence: 2 * time.Minute,
		},
		"but not when it gets none": {
			in: Input{
				Count: 2, Me: "n", Trust: assignment.Clean, FenceAfter: 2 * time.Minute, State: assignment.State{Slots: both}, Pods: append([]Pod{pod("n", 1)}, everybody...),
			},
			fence: time.Minute,
		},
		"what stands there, during a quarantine": {
			in: Input{
				Count: 3, Me: "a", Trust: assignment.Clean, Pods: everybody,
				State: assignment.State{Slots: both, Quarantine: assignment.Quarantine{{From: 2, To: 2, Epoch: epoch}}},
			},
			quarantine: assignment.Quarantine{{From: 2, To: 2, Epoch: epoch}}, fence: time.Hour,
		},
		"and while a pod has an entry and no receipt": {
			in:    Input{Count: 3, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: both}, Pods: []Pod{everybody[0], pod("b", 9)}},
			fence: time.Hour,
		},
		"the planner too": {
			in: Input{Count: 3, Me: "b", Trust: assignment.Clean, State: assignment.State{Slots: both}, Pods: []Pod{everybody[0], pod("b", 9)}}, fence: time.Hour,
		},
		"or a receipt for another slot": {
			in:    Input{Count: 3, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: both}, Pods: []Pod{everybody[0], pod("b", 9, holds(2), minute)}},
			fence: time.Hour,
		},
		"or one whose fence-after cannot be read": {
			in:    Input{Count: 3, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: both}, Pods: []Pod{everybody[0], pod("b", 9, holds(1), fenced(-1))}},
			fence: time.Hour,
		},
		"or got its entry just now": {
			in: Input{Count: 3, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: slots{0: "a"}}, Pods: []Pod{everybody[0], pod("m", 1)}}, fence: time.Hour,
		},
		"the slot of a pod that vanished is kept free": {
			in:         Input{Count: 3, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: both}, Pods: everybody[:1]},
			quarantine: assignment.Quarantine{{From: 1, To: 1, Epoch: 1}}, fence: time.Hour,
		},
		"not if its processes are known to have ended": {
			in: Input{Count: 3, Me: "a", Trust: assignment.Clean, Ended: map[int]bool{1: true}, State: assignment.State{Slots: both}, Pods: everybody[:1]}, fence: time.Minute,
		},
		"nor one that is given": {
			in: Input{Count: 3, Me: "a", Trust: assignment.Clean, State: assignment.State{Slots: both}, Pods: []Pod{everybody[0], pod("b", 9, gives(1), terminating)}}, fence: time.Minute,
		},
		"in a map that is not clean, what nobody has begins anew, for as long as the receipts say": {
			in: Input{
				Count: 3, Me: "a", Pods: everybody,
				State: assignment.State{Slots: both, Quarantine: assignment.Quarantine{{From: 2, To: assignment.MaxID, Epoch: epoch}}},
			},
			quarantine: assignment.Quarantine{{From: 2, To: 8, Epoch: 1}}, fence: time.Minute,
		},
		"where nobody tracks who wrote it, it goes on": {
			in: Input{
				Count: 3, Me: "a", Trust: assignment.Untracked, Pods: everybody,
				State: assignment.State{Slots: both, Quarantine: assignment.Quarantine{{From: 2, To: assignment.MaxID, Epoch: epoch}}},
			},
			quarantine: assignment.Quarantine{{From: 2, To: 8, Epoch: epoch}}, fence: time.Hour,
		},
		"and what is not in it begins": {
			in: Input{
				Count: 3, Me: "a", Trust: assignment.Untracked, Pods: everybody,
				State: assignment.State{Slots: both, Quarantine: assignment.Quarantine{{From: 2, To: 2, Epoch: epoch}}},
			},
			quarantine: assignment.Quarantine{{From: 2, To: 2, Epoch: epoch}, {From: 3, To: 8, Epoch: 1}}, fence: time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			in.Now, in.Commit, in.State.FenceAfter = t0, true, time.Hour
			next := decide(in).Next
			if next.FenceAfter != tc.fence {
				t.Errorf("fence-after %s, want %s", next.FenceAfter, tc.fence)
			}
			got := slices.Clone(next.Quarantine)
			for i := range got {
				got[i].To = min(got[i].To, 8)
				if got[i].Epoch == next.Epoch {
					got[i].Epoch = 1
				}
			}
			if !slices.Equal(got, tc.quarantine) {
				t.Errorf("in quarantine are %v, want %v", got, tc.quarantine)
			}
		})
	}
}
