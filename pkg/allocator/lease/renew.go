package lease

import "context"

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
			g.o.Ended()
		}
	})
}

func (g *Guard) endRenewals() {
	if g.end != nil {
		g.end()
		g.end = nil
	}
}

// renew renews the own Lease.
func (g *Guard) renew(ctx context.Context) {
	retry := g.o.Pace.Backoff()
	for {
		next := g.o.After / contacts
		g.boot.BootWait(g.boot.BootTime()+g.o.Pace.Earlier(next), ctx.Done())
		for ctx.Err() == nil && !g.Over() {
			if g.renewOnce(ctx) {
				retry.Reset()
				break
			}
			g.boot.BootWait(g.boot.BootTime()+min(next, retry.Next()), ctx.Done())
		}
		if ctx.Err() != nil || g.Over() {
			return
		}
	}
}

// renewOnce writes the own Lease once. It reads it before that if a write had no answer.
func (g *Guard) renewOnce(ctx context.Context) bool {
	g.writing <- struct{}{}
	defer g.written()
	request, cancel := context.WithTimeout(ctx, g.o.After/2)
	defer cancel()
	own := g.mine()
	if own.Version == "" {
		now, err := g.o.Store.GetLease(request, g.ref, own.ID)
		switch {
		case err != nil:
			g.answered(err)
			return false
		case now.Holder != own.Holder:
			g.lose(now)
			g.Fence()
			g.o.Ended()
			return false
		}
		own.Version = now.Version
	}
	return g.put(request, own.Version, own.Receipt.Share) == nil
}
