package lease

import (
	"context"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

const (
	// leftoverTime is how long after a change of the count holders look for leftover Leases.
	leftoverTime = 4 * time.Second
	// leftoverTurn is the extra delay of each further holder, because the holders of lower ids may be dead.
	leftoverTurn = time.Second
	// cleaners is how many holders look. The pods of the lowest ids may never start.
	cleaners = 3
)

// Leftovers schedules the deletion of Leases of slots that the owner no longer has. A few holders delete them, one after the other.
type Leftovers struct {
	// at is when the first holder looks, zero if no Lease is left.
	at time.Time
}

// Changed schedules a look, because the count has changed.
func (l *Leftovers) Changed(now time.Time) { l.at = now.Add(leftoverTime) }

// At returns when the holder with this many holders of lower ids looks, zero if it does not.
func (l *Leftovers) At(before int) time.Time {
	if l.at.IsZero() || before >= cleaners {
		return time.Time{}
	}
	return l.at.Add(time.Duration(before) * leftoverTurn)
}

// Delete deletes the Leases of the slots from this one on. It schedules another look for when the next Lease expires.
func (l *Leftovers) Delete(ctx context.Context, g *Guard, from int, now func() time.Time) error {
	left, err := g.Clear(ctx, from)
	l.at = time.Time{}
	if left > 0 || err != nil {
		l.at = now().Add(max(left, leftoverTime))
	}
	if !request.Temporary(err) {
		return nil // its Role may not permit deletion, and no work ends because of that
	}
	return err
}
