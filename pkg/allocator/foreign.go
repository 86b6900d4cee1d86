package allocator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// foreignWrites remembers who else writes the owner's annotations.
type foreignWrites struct {
	// foreign is the last map that this process read and that somebody else had changed, and when that was.
	foreign   store.Owner
	foreignAt time.Time
	blamed    string // whom the log named last for a wait
}

// noteForeign remembers a map that somebody else changed.
func (m *foreignWrites) noteForeign(owner store.Owner, now time.Time) {
	if owner.Trust == assignment.Foreign {
		m.foreign, m.foreignAt = owner, now
	}
}

// nameForeignWriter says who writes the owner's annotations, if that is why this claim comes to nothing.
func (c *claimer) nameForeignWriter() {
	if c.foreignAt.IsZero() || c.clock.Since(c.foreignAt) > lasting {
		return
	}
	by := c.foreign.Tampering(c.store.Key)
	c.setWaiting(fmt.Sprintf("a moment in which nobody else writes idalloc's annotations of %s: %s", c.ref, by))
	if who := c.foreign.Culprits(c.store.Key); who != c.blamed { // the same writer is named once
		c.blamed = who
		c.happened.Tell(event.Waiting{Count: c.foreign.Count, Reason: c.Waiting()})
	}
}

// backOff waits after a claim that came to nothing because others wrote the owner too. It waits a random time, or until the map is
// as a claim needs it, which beside another writer may be so for milliseconds only.
func (c *claimer) backOff(ctx context.Context) error {
	c.contenders = min(max(2*c.contenders, 2), mostContenders)
	c.nameForeignWriter()
	in := c.retry.Next()
	if c.foreignAt.IsZero() {
		return c.sleep(ctx, in)
	}
	c.listenToOwner()
	_, err := c.listenFor(ctx, in, func(owner store.Owner) bool {
		return owner.Clean() && named(owner, c.Allocator) && !c.writesFirst(owner)
	})
	return errors.Join(err, context.Cause(ctx))
}
