package inspect

import (
	"math"
	"testing"
)

// If the count is mistyped, the number of rows and findings depends on the pods and entries that exist.
func TestTwoBillionSlots(t *testing.T) {
	n := settledPods(2)
	n.owner.Count = math.MaxInt32
	n.add("waits")
	v := n.view()
	if len(v.Slots)+v.Unlisted != math.MaxInt32 || v.Slots[0].Pod != "a" || v.Slots[1].Pod != "b" {
		t.Errorf("%d rows and %d slots without one, first %v", len(v.Slots), v.Unlisted, v.Slots[:2])
	}
	r := reported(n)
	if r.Held != 2 || len(r.Findings) != 1 || *r.Findings[0].ID != 2 {
		t.Errorf("%d slots are held, findings %v; a pod waits beside free slots", r.Held, r.Findings)
	}
}
