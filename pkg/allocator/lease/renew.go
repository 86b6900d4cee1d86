package lease

import (
	"context"
	"errors"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// A Lease lasts through an outage for as long as its work may go on, less the parts of fence-after that pass before the outage and after it:
// between two renewals, and between two tries. docs/outages.md has the sums.
const (
	// renewals is how often a process renews its Lease within one fence-after.
	renewals = 12
	// tries is how often it tries within one fence-after while it is not answered. No two tries are further apart than longestWait, and a thousand
	// processes would keep a server busy that they ask more often than each shortestWait.
	tries                     = 60
	shortestWait, longestWait = 200 * time.Millisecond, 10 * time.Second
)

// keep renews the own Lease and watches its time, in two goroutines that end with the streams or with endRenewals.
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

// works is how long work may go on after the renewal was sent that was accepted last.
func (g *Guard) works() time.Duration { return g.o.After - g.o.Lead }

// renew renews the own Lease. It counts from the sending of the renewal that was accepted last, as the Lease's time does.
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

// renewOnce writes the own Lease. An earlier write that had no answer may have changed it. Then this one is refused, and it is written again at once.
func (g *Guard) renewOnce(ctx context.Context) bool {
	g.writing <- struct{}{}
	defer g.written()
	request, cancel := context.WithTimeout(ctx, g.works()/2)
	defer cancel()
	err := g.write(request)
	if errors.Is(err, store.ErrConflict) {
		err = g.write(request)
	}
	return err == nil
}

// errNotMine means that another pod, or none, has the own Lease now.
var errNotMine = errors.New("idalloc: the Lease is not this pod's any more")

// write writes the own Lease as it is. It reads it before that if it has changed.
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
