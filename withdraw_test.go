package idalloc

import (
	"strings"
	"testing"

	"github.com/idalloc/idalloc/internal/meter"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/identity"
)

// The loop ends by itself when a permission is gone, and publishes nothing then.
func TestTheMetricsHoldNoIDWhenTheLoopHasEnded(t *testing.T) {
	pending := identity.Pending("worker-0", "shop")
	held := pending.Without(identity.StateAssigned)
	held.ID, held.Token = 3, 7
	i := &Instance{current: held, meter: meter.New()}
	i.meter.Observe(event.Published{From: pending, To: held})
	i.withdraw(identity.StateLost)
	var text strings.Builder
	if err := i.meter.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\nidalloc_id_held 0\n") || !strings.Contains(text.String(), "\nidalloc_state{state=\"lost\"} 1\n") {
		t.Error(text.String())
	}
}

// Who waits hears that the id is fenced, also while the loop is busy.
func TestAFenceIsToldAtOnce(t *testing.T) {
	pending := identity.Pending("worker-0", "shop")
	held := pending.Without(identity.StateAssigned)
	held.ID, held.Token = 3, 7
	i := &Instance{current: held, changed: make(chan struct{}), changes: make(chan Identity, 1)}
	changed := i.changed
	i.fence(0)
	<-changed
	if id := <-i.changes; id.State != identity.StateFenced || id.Assigned() {
		t.Errorf("it hears of %v", id)
	}
	i.current = pending
	if i.fence(0); len(i.changes) > 0 || i.current != pending {
		t.Errorf("without an id it becomes %v", i.current)
	}
}
