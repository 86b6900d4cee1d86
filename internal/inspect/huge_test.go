package inspect

import (
	"math"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// If somebody mistypes the count, the number of rows and findings depends on the pods and entries that exist.
func TestTwoBillionSlots(t *testing.T) {
	n := settledPods(2)
	n.owner.Count = math.MaxInt32
	n.owner.Record.State.FenceAfter = assignment.MaxFenceAfter
	n.owner.Record.State.Quarantine = assignment.Quarantine{{From: 2, To: assignment.MaxID, Epoch: 7}}
	n.add("waits")
	v := n.view()
	if len(v.Slots)+v.Unlisted != math.MaxInt32 || v.Slots[0].Pod != "a" || v.Slots[1].Pod != "b" {
		t.Errorf("%d rows and %d slots without one, first %v", len(v.Slots), v.Unlisted, v.Slots[:2])
	}
	r := check(n)
	if r.Held != 2 || len(r.Findings) != 0 {
		t.Errorf("%d slots are held, findings %v", r.Held, r.Findings)
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "2, 3, 4, 5, 6 and 2147483640 more") {
		t.Errorf("warnings %q", r.Warnings)
	}
	n.owner.Record.State.Quarantine = nil
	if r := check(n); len(r.Findings) != 1 || *r.Findings[0].ID != 2 {
		t.Errorf("a pod waits beside free slots, findings %v", r.Findings)
	}
}
