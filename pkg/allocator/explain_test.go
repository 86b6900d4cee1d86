package allocator

import (
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/plan"
)

func TestAWaiterSaysForWhichPodsAllWaitThatDoNotGo(t *testing.T) {
	if got := whoOutlives(plan.Decision{}); got != "" {
		t.Errorf("nobody outlives anything, and it says %q", got)
	}
	overdue := []plan.Change{{ID: 0, Pod: "a"}, {ID: 2, Pod: "b"}, {ID: 3, Pod: "c"}, {ID: 5, Pod: "d"}}
	got := whoOutlives(plan.Decision{Overdue: overdue})
	if !strings.Contains(got, "slot 0 of pod a, slot 2 of pod b, slot 3 of pod c: "+OutlivesGrace) || strings.Contains(got, "pod d") {
		t.Errorf("it says %q", got)
	}
}
