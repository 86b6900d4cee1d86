package lease

import (
	"context"
	"errors"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// A Lease survives an outage of the length of works, less the parts of fence-after that pass before and after the outage: between two renewals,
// and between two tries. docs/outages.md has the sums.
const (
	// renewals is how often a process renews its Lease within one fence-after.
	renewals = 12
	// tries is how often it tries within one fence-after without an answer. Two tries are at most longestWait apart. They are at least shortestWait apart,
	// because a thousand processes that ask more often would keep a server busy.
	tries                     = 60
	shortestWait, longestWait = 200 * time.Millisecond, 10 * time.Second
)

// keep renews this pod's Lease and watches its expiry, in two goroutines that end with the streams or with endRenewals.
func (g *Guard) keep() {
	ctx, end := context.WithCancel(g.streams)
	g.end = end
	g.running.Go(func() { g.renew(ctx) })
	g.running.Go(func() {
		for ctx.Err() == nil && !g.Over() {
			g.boot.BootWait(g.deadline(), ctx.Done())
		}
		if g.Over() {
			g.o.Fenced(g.deadline() + g.o.Lead)
			g.o.News()
		}
	})
}

func (g *Guard) endRenewals() {
	if g.end != nil {
		g.end()
		g.end = nil
	}
}

// works returns how long work may continue after the sending of the last accepted renewal.
func (g *Guard) works() time.Duration { return g.o.After - g.o.Lead }

// renew renews this pod's Lease. Its interval counts from the sending of the last accepted renewal, like the Lease's time.
func (g *Guard) renew(ctx context.Context) {
	retry, wait := g.o.Pace.Backoff(), min(max(g.o.After/tries, shortestWait), longestWait)
	until := func(at time.Duration) bool {
		g.boot.BootWait(at, ctx.Done())
		return ctx.Err() == nil && !g.Over()
	}
	for until(g.deadline() - g.works() + g.o.Pace.Earlier(g.o.After/renewals)) {
		for retry.Reset(); !g.renewOnce(ctx); {
			if !until(g.boot.BootTime() + min(retry.Next(), g.o.Pace.Earlier(wait))) {
				return
			}
		}
	}
}

// renewOnce writes this pod's Lease. If an earlier write without an answer has changed the Lease, this write is refused, and it is repeated at once.
func (g *Guard) renewOnce(ctx context.Context) bool {
	g.writing <- struct{}{}
	defer g.written()
	short, cancel := context.WithTimeout(ctx, g.works()/2)
	defer cancel()
	err := g.write(short)
	if errors.Is(err, request.ErrConflict) {
		err = g.write(short)
	}
	return err == nil
}

// errNotMine means that this pod no longer holds its Lease.
var errNotMine = errors.New("idalloc: the Lease is not this pod's any more")

// write writes this pod's Lease unchanged. If the stored one has changed, it reads that first.
func (g *Guard) write(ctx context.Context) error {
	own := g.mine()
	if own.Version == "" {
		now, err := g.o.Store.GetLease(ctx, g.ref, own.ID)
		switch {
		case err != nil:
			g.answered(err)
			return err
		case now.Holder != own.Holder:
			g.lose(now)
			g.Fence()
			g.o.News()
			return errNotMine
		}
		own.Version, own.UID = now.Version, now.UID
	}
	return g.put(ctx, own, own.Receipt.Share)
}
