package inspect

import (
	"fmt"
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

// A planner can write no more into full annotations, so that pods wait beside ids that no pod has.
func TestFullAnnotationsHideNoID(t *testing.T) {
	const full, waiting = 5400, 3
	n := settledPods(0)
	n.owner.Count = full + 1
	for id := range full {
		p := n.add(fmt.Sprintf("worker-of-a-long-name-%04d", id))
		n.name(id, p.Name)
		n.lock(p.Name, id)
	}
	for i := range waiting {
		n.add(fmt.Sprintf("waiter-%d", i))
	}
	r := reported(n)
	if len(r.Findings) != 1 || r.Findings[0].Kind != "unheld" || r.Findings[0].Pod != "waiter-0" || *r.Findings[0].ID != full {
		t.Errorf("%d findings, want that id %d belongs to no pod while waiter-0 waits: %+v", len(r.Findings), full, r.Findings[:min(3, len(r.Findings))])
	}
}
