package allocator

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// A waiter beside a controller that writes the annotations again and again says whom it waits for, and tells the same writer once.
func TestAWaiterNamesWhoWritesTheAnnotations(t *testing.T) {
	clk := clocktesting.NewFakeClock(noon)
	var told waits
	a := &Allocator{}
	a.store, a.clock, a.log, a.happened = &store.Store{Key: assignment.DefaultKey}, clk, logr.Discard(), event.Observers{&told}
	c := &claimer{Allocator: a}
	wrote := func(manager string) {
		owner := store.Owner{Trust: assignment.Foreign, Count: 3}
		owner.Writers = []store.Writer{{Manager: manager, Operation: "Update", Time: clk.Now(), Keys: []string{assignment.DefaultKey}}}
		c.noteForeign(owner, clk.Now())
		c.nameForeignWriter()
	}
	c.setWaiting("a free slot")
	c.nameForeignWriter()
	c.noteForeign(store.Owner{Trust: assignment.Clean}, clk.Now())
	c.nameForeignWriter()
	if got := c.Waiting(); got != "a free slot" || len(told) != 0 {
		t.Errorf("nobody else wrote, and it waits for %q, told %q", got, told)
	}
	wrote("helm")
	clk.Step(20 * time.Millisecond)
	wrote("helm")
	if got := c.Waiting(); !strings.Contains(got, `"helm"`) {
		t.Errorf("it waits for %q, and helm is in its way", got)
	}
	wrote("kubectl")
	if len(told) != 2 || !strings.Contains(told[0], `"helm"`) || !strings.Contains(told[1], `"kubectl"`) {
		t.Errorf("told %q, want helm and kubectl once", told)
	}
	clk.Step(lasting + 1)
	c.setWaiting("a free slot")
	c.nameForeignWriter()
	if got := c.Waiting(); got != "a free slot" {
		t.Errorf("the others stopped a while ago, and it waits for %q", got)
	}
}

// waits are the reasons of the waits that were told.
type waits []string

func (w *waits) Observe(e event.Event) {
	if e, ok := e.(event.Waiting); ok {
		*w = append(*w, e.Reason)
	}
}
