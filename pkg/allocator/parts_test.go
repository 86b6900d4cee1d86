package allocator

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/contact"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// What stops together leaves the receipt together. It waits for what hangs only for a moment, and not at all once the stop has ended.
func TestPartsThatStopTogetherAreTakenInTogether(t *testing.T) {
	all := receipt.Share{ID: 0, Of: 4, Partitions: placement.Between(0, 3)}
	for what, c := range map[string]struct {
		after time.Duration
		ended bool
		works placement.Set
	}{
		"at once":                  {0, false, all.Partitions},
		"before the moment ends":   {partsTime - 1, false, all.Partitions},
		"after a moment":           {partsTime, false, placement.Of(0, 3)},
		"when the stop has ended":  {0, true, placement.Of(0)},
		"ended, and a moment past": {partsTime, true, placement.Of(0)},
	} {
		t.Run(what, func(t *testing.T) {
			clk := testclock.NewFakeClock(time.Unix(1000, 0))
			a := &Allocator{clock: clk, contact: contact.New(contact.Options{}, logr.Discard())}
			a.state = duty.LockState{Working: all}.Told(receipt.Share{ID: 0, Of: 4, Partitions: placement.Of(0)})
			s := &stop{Part: a.state.Stopping, end: func() {}}
			a.work.stops = []*stop{s}
			for _, k := range []int{1, 2} {
				a.bringsPart(func() { a.partStopped(s, placement.Of(k)) })
			}
			if due := a.work.partsDue(); !due.Equal(clk.Now().Add(partsTime)) {
				t.Errorf("the loop wakes at %s", due)
			}
			clk.Step(c.after)
			if c.ended {
				a.brings(func() { a.stopEnded(s, nil, false) })
			}
			a.hearStops()
			if works := a.state.Working.Partitions; !works.Equal(c.works) {
				t.Errorf("it works on %s, want %s", works, c.works)
			}
			if due := a.work.partsDue(); due.IsZero() == c.works.Equal(all.Partitions) {
				t.Errorf("then the loop wakes at %s", due)
			}
		})
	}
}
