package plan

import (
	"strconv"
	"testing"

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
