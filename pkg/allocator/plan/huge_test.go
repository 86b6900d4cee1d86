package plan

import (
	"math"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// A mistyped count must not keep every pod busy: what is free is counted from what is not.
func TestPlanForTwoBillion(t *testing.T) {
	const fence = 30 * time.Second
	state := assignment.State{
		Slots: slots{0: "held"}, FenceAfter: fence, Epoch: 100, Quarantine: assignment.Quarantine{{From: 1, To: assignment.MaxID, Epoch: 7}},
	}
	holder := pod("held", 2, holds(0))
	holder.Receipt.FenceAfter = fence
	in := Input{Count: math.MaxInt32, State: state, Trust: assignment.Clean, Pods: []Pod{holder, pod("waits", 1)}, Me: "waits", FenceAfter: fence, Now: t0}
	if d := Plan(in); d.Quarantined != math.MaxInt32-1 || d.Waiting != 1 {
		t.Errorf("%d slots are in quarantine and %d pods wait, want %d and 1", d.Quarantined, d.Waiting, math.MaxInt32-1)
	}
	in.Served = map[int64]bool{7: true}
	if d := Plan(in); d.Next == nil || d.Next.Slots[1] != "waits" || d.Quarantined != 0 {
		t.Errorf("the pod that waited gets %v with %d slots in quarantine", d.Next, d.Quarantined)
	}
}

// The numbers of idle slots are those that a look at every slot gives.
func TestIdleSlotsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &planner{in: Input{Count: rapid.IntRange(0, 12).Draw(t, "count"), Served: map[int64]bool{2: true}}, locks: map[int]string{}, barred: 20}
		p.next.Slots = assignment.Slots{}
		for id := range 15 {
			what := rapid.IntRange(0, 4).Draw(t, "slot "+strconv.Itoa(id))
			switch what {
			case 1:
				p.next.Slots[id] = "a"
			case 2:
				p.locks[id] = "b"
			}
			if epoch := rapid.Int64Range(0, 2).Draw(t, "quarantine"); epoch > 0 {
				p.next.Quarantine = p.next.Quarantine.With(id, id, epoch)
			}
		}
		var barred, quarantined int
		for id := range p.in.Count {
			_, taken := p.next.Slots[id]
			_, locked := p.locks[id]
			switch {
			case taken || locked:
			case p.quarantined(id):
				quarantined++
			default:
				barred++
			}
		}
		if b, q := p.idle(); b != barred || q != quarantined {
			t.Fatalf("idle counts %d free and %d quarantined slots, there are %d and %d", b, q, barred, quarantined)
		}
	})
}
