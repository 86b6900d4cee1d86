package plan

import (
	"math"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// The numbers of idle slots are those that a look at every slot gives.
func TestIdleSlotsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &planner{in: Input{Count: rapid.IntRange(0, 12).Draw(t, "count"), Served: map[int64]bool{2: true}}, locks: map[int]string{}, makingWay: 20}
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
		var reserved, quarantined int
		for id := range p.in.Count {
			_, taken := p.next.Slots[id]
			_, locked := p.locks[id]
			switch {
			case taken || locked:
			case p.quarantined(id):
				quarantined++
			default:
				reserved++
			}
		}
		if b, q := p.unfilled(); b != reserved || q != quarantined {
			t.Fatalf("unfilled counts %d free and %d quarantined slots, there are %d and %d", b, q, reserved, quarantined)
		}
	})
}

// A count that is too high by far costs no time. A look at every slot takes minutes, a plan microseconds.
func TestTwoBillionSlotsArePlannedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		quarantine          assignment.Quarantine
		filled, quarantined int
	}{
		"free":          {nil, 1, 0},
		"in quarantine": {assignment.Quarantine{{From: 1, To: assignment.MaxID, Epoch: 7}}, 0, math.MaxInt32 - 1},
		"served":        {assignment.Quarantine{{From: 1, To: assignment.MaxID, Epoch: 8}}, 1, 0},
	} {
		in := Input{Me: "b", Count: math.MaxInt32, Trust: assignment.Clean, Served: map[int64]bool{8: true}, FenceAfter: time.Minute}
		in.State = assignment.State{Slots: assignment.Slots{0: "a"}, Quarantine: tc.quarantine, FenceAfter: time.Minute}
		in.Pods = []Pod{{Name: "a", Owned: true, Ordinal: NoOrdinal, Receipt: &assignment.Receipt{ID: 0}}, {Name: "b", Owned: true, Ordinal: NoOrdinal}}
		began := time.Now()
		d := Plan(in)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: a plan for a count of two billion takes %s", name, took)
		}
		if len(d.Filled) != tc.filled || d.Quarantined != tc.quarantined {
			t.Errorf("%s: %d slots are given and %d are in quarantine, want %d and %d", name, len(d.Filled), d.Quarantined, tc.filled, tc.quarantined)
		}
	}
}
