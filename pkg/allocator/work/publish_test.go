package work

import (
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/invariant"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Programs fence by tokens: an identity that keeps a partition with a lower token would take it from nobody, and lose its own writes.
func TestATokenThatFallsEndsTheProcess(t *testing.T) {
	for what, c := range map[string]struct {
		slot      int64
		partition int64
		idle      bool
		ends      bool
	}{
		"the same tokens":                   {slot: 5, partition: 7},
		"higher ones":                       {slot: 6, partition: 8},
		"a lower one of the id":             {slot: 4, partition: 7, ends: true},
		"a lower one of a partition":        {slot: 5, partition: 6, ends: true},
		"a lower one after the id was lost": {slot: 4, partition: 6, idle: true},
	} {
		w := New(Options{Divides: true, Publish: func(identity.Identity) {}, Tell: func(event.Event) {}})
		w.confirmed = true
		all := receipt.Share{ID: 1, Of: 4, Partitions: placement.Between(0, 3)}
		tell := func(slot, partition int64) {
			w.token, w.shares = slot, []identity.Share{{Set: all.Partitions, Token: partition}}
			w.Publish(identity.StateAssigned, duty.LockState{Known: true, Lock: duty.Lock{State: receipt.Locks, Share: all}, Working: all}, Claim{Count: 4, Known: true, Counted: true})
		}
		tell(5, 7)
		if c.idle {
			w.Publish(identity.StateLost, duty.LockState{Known: true}, Claim{})
		}
		func() {
			defer func() {
				if _, ended := recover().(invariant.BrokenError); ended != c.ends {
					t.Errorf("%s: the process ends: %v, want %v", what, ended, c.ends)
				}
			}()
			tell(c.slot, c.partition)
		}()
	}
}
