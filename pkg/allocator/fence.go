package allocator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// MinFenceAfter is the shortest fence-after: below it an API server that is merely slow would take ids away.
const MinFenceAfter = 3 * time.Second

// contacts is how many times contact is sought in one fence-after.
const contacts = 4

// lease bounds how long an id may be acted on without contact (strict mode). Once it expired it stays
// so: the work under the id was told to stop.
type lease struct {
	length time.Duration
	now    func() time.Duration // a clock that goes on in suspend

	mu    sync.Mutex
	until time.Duration
	gone  bool
}

func newLease(length, sent time.Duration, now func() time.Duration) *lease {
	return &lease{length: length, now: now, until: sent + length}
}

// renew counts from when a request was sent whose answer confirmed the id.
func (l *lease) renew(sent time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expire() {
		return
	}
	l.until = max(l.until, sent+l.length)
}

// expired looks at the clock.
func (l *lease) expired() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expire()
}

func (l *lease) expire() bool {
	l.gone = l.gone || l.now() >= l.until
	return l.gone
}

func (l *lease) deadline() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// checkFence refuses options that strict mode cannot work with.
func (o Options) checkFence() error {
	switch {
	case o.FenceAfter == 0:
		return nil
	case o.FenceAfter < MinFenceAfter || o.FenceAfter > assignment.MaxFenceAfter:
		return fmt.Errorf("idalloc: fence-after %s: use %s to %s", o.FenceAfter, MinFenceAfter, assignment.MaxFenceAfter)
	case o.FenceLead < 0 || o.FenceLead > o.FenceAfter/2:
		return fmt.Errorf("idalloc: the time to stop the work in, %s, is not in [0, half of fence-after %s]", o.FenceLead, o.FenceAfter)
	}
	return nil
}

func (a *Allocator) strict() bool { return a.o.FenceAfter > 0 }

// Fenced reports, by the clock at the call, whether the id that was published last was given up for lack
// of contact (strict mode). It is for whoever may have been suspended since. It does not block and may
// be called from any goroutine.
func (a *Allocator) Fenced() bool {
	l := a.lease.Load()
	return l != nil && l.expired()
}

// guard keeps contact and watches the deadline of what is held, in two goroutines that stop ends and
// waits for. fenced is closed when the id is given up; it is nil without strict mode.
func (a *Allocator) guard(ctx context.Context) (fenced <-chan struct{}, stop func()) {
	l := a.lease.Load()
	if l == nil {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	var running sync.WaitGroup
	mine := a.mine() // the loop replaces what it is made of
	running.Go(func() { a.keepContact(ctx, mine, l) })
	running.Go(func() {
		for ctx.Err() == nil && !l.expired() {
			a.boot.BootWait(l.deadline(), ctx.Done())
		}
		if l.expired() { // also when the loop noticed it first and stops this
			a.o.Fenced(l.deadline() + a.o.FenceLead)
			close(gone)
		}
	})
	return gone, func() {
		cancel()
		running.Wait()
	}
}

// keepContact renews the lease with reads of the owner that confirm the slot.
func (a *Allocator) keepContact(ctx context.Context, mine store.Holding, l *lease) {
	retry := a.pace.Backoff()
	for {
		sent := a.boot.BootTime()
		request, cancel := context.WithTimeout(ctx, a.o.FenceAfter/2)
		owner, err := a.store.Get(request, a.ref)
		cancel()
		next := a.o.FenceAfter / contacts
		if err == nil && owner.Confirms(mine) {
			l.renew(sent)
			retry.Reset()
		} else {
			next = min(next, retry.Next())
		}
		a.boot.BootWait(sent+a.pace.Earlier(next), ctx.Done())
		if ctx.Err() != nil || l.expired() {
			return
		}
	}
}

// giveUp has the work under an id that is lost stopped in time: from here on nobody watches the deadline.
func (a *Allocator) giveUp() {
	if l := a.lease.Load(); l != nil {
		a.o.Fenced(min(l.deadline(), l.now()) + a.o.FenceLead)
	}
}

// fence gives the id up for lack of contact.
func (h *holding) fence() {
	h.log.Info("no contact with the API server for too long: the id is given up until it is back", "id", h.held.id, "epoch", h.held.token, "fenceAfter", h.o.FenceAfter, "reason", h.whyFenced())
	h.becomeFenced()
}

// whyFenced tells an API server that is away from a map that confirms nobody.
func (h *holding) whyFenced() string {
	if view := h.held.view; !view.Trust.Believed() {
		return "a map that somebody else wrote confirms no id: " + view.Tampering(h.store.Key)
	}
	return "no answer came in time"
}
