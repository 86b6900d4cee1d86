package work

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
			w := New(Options{Clock: clk, Contact: contact.New(contact.Options{}, logr.Discard())})
			state := duty.LockState{Working: all}.Told(receipt.Share{ID: 0, Of: 4, Partitions: placement.Of(0)})
			s := &stop{Part: state.Stopping, end: func() {}}
			w.stops.running = []*stop{s}
			for _, k := range []int{1, 2} {
				w.partEnds(func(t duty.LockState) duty.LockState { return w.partStopped(t, s, placement.Of(k)) })
			}
			if due := w.partsDue(); !due.Equal(clk.Now().Add(partsTime)) {
				t.Errorf("the loop wakes at %s", due)
			}
			clk.Step(c.after)
			if c.ended {
				w.ends(func(t duty.LockState) duty.LockState { return w.stopEnded(t, s, nil, false) })
			}
			state = w.Hear(state)
			if works := state.Working.Partitions; !works.Equal(c.works) {
				t.Errorf("it works on %s, want %s", works, c.works)
			}
			if due := w.partsDue(); due.IsZero() == c.works.Equal(all.Partitions) {
				t.Errorf("then the loop wakes at %s", due)
			}
		})
	}
}

// The receipt is gone while it is not known what stands on the pod: a later lock of the same slot is another lock, with another token.
func TestALockAfterALostOneHasAnotherToken(t *testing.T) {
	for name, now := range map[string]duty.Lock{
		"the receipt is gone":   {Share: receipt.Nothing()},
		"it locks another slot": {State: receipt.Locks, Share: receipt.Share{ID: 1}},
		"it is the pod's own":   {State: receipt.Locks, Share: receipt.Share{ID: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Work{token: 7, confirmed: true}
			w.stopped(duty.LockState{Lock: now, Working: receipt.Share{ID: 0}}, duty.Part{All: true})
			if kept := w.token == 7; kept != (name == "it is the pod's own") {
				t.Errorf("the token after the work has stopped is %d", w.token)
			}
		})
	}
}
