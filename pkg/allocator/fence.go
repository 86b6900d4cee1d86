package allocator

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/boottime"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// MinFenceAfter is the shortest fence-after: below it an API server that is merely slow would take ids away.
const MinFenceAfter = 3 * time.Second

// contacts is how often a process seeks contact within one fence-after.
const contacts = 4

// lease bounds for how long work may go on under an id without contact (strict mode). An expired lease stays
// expired, because the work was told to stop.
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

// renew starts the time again. sent is when the request was sent whose answer confirmed the id.
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

// strictMode is the deadline of what this process holds. The zero value is that of a process without one.
type strictMode struct {
	boot boottime.Source // goes on in suspend
	// after is fence-after, zero without strict mode; lead is how long before it the id is fenced.
	after, lead time.Duration
	// tell is Options.Fenced.
	tell func(by time.Duration)
	// lease is that of the slot held last, nil without strict mode.
	lease atomic.Pointer[lease]
}

// begin starts the deadline. sent is when the request was sent whose answer confirmed the slot. It returns false if the deadline
// has passed already.
func (s *strictMode) begin(sent time.Duration) bool {
	if s.after == 0 {
		return true
	}
	l := newLease(s.after-s.lead, sent, s.boot.BootTime)
	if l.expired() {
		return false
	}
	s.lease.Store(l)
	return true
}

// renew starts the deadline again, as begin does.
func (s *strictMode) renew(sent time.Duration) {
	if l := s.lease.Load(); l != nil {
		l.renew(sent)
	}
}

// left returns how long it is until the deadline; ok is false without one.
func (s *strictMode) left() (left time.Duration, ok bool) {
	l := s.lease.Load()
	if l == nil {
		return 0, false
	}
	return l.deadline() - s.boot.BootTime(), true
}

// over reports, by the clock at the call, whether the deadline has passed. It may be called from any goroutine.
func (s *strictMode) over() bool {
	l := s.lease.Load()
	return l != nil && l.expired()
}

// stop has the work under a lost slot stopped in time, because nobody watches the deadline from here on.
func (s *strictMode) stop() {
	if l := s.lease.Load(); l != nil {
		s.tell(min(l.deadline(), l.now()) + s.lead)
	}
}

// guard seeks contact about mine and watches its deadline, in two goroutines that stop ends and waits for. fenced is closed when
// the deadline passes; it is nil without strict mode.
func (s *strictMode) guard(ctx context.Context, c *connection, mine store.Holding) (fenced <-chan struct{}, stop func()) {
	l := s.lease.Load()
	if l == nil {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { s.keepContact(ctx, c, mine, l) })
	running.Go(func() {
		for ctx.Err() == nil && !l.expired() {
			s.boot.BootWait(l.deadline(), ctx.Done())
		}
		if l.expired() { // also when the loop noticed it first and stops this
			s.tell(l.deadline() + s.lead)
			close(gone)
		}
	})
	return gone, func() {
		cancel()
		running.Wait()
	}
}

// keepContact renews the lease with reads of the owner that confirm the slot.
func (s *strictMode) keepContact(ctx context.Context, c *connection, mine store.Holding, l *lease) {
	retry := c.pace.Backoff()
	for {
		sent := s.boot.BootTime()
		request, cancel := context.WithTimeout(ctx, s.after/2)
		owner, err := c.store.Get(request, c.ref)
		cancel()
		next := s.after / contacts
		if err == nil && owner.Confirms(mine) {
			l.renew(sent)
			c.happened.Tell(event.Contact{Age: s.boot.BootTime() - sent})
			retry.Reset()
		} else {
			next = min(next, retry.Next())
		}
		s.boot.BootWait(sent+c.pace.Earlier(next), ctx.Done())
		if ctx.Err() != nil || l.expired() {
			return
		}
	}
}

// Fenced reports, by the clock at the call, whether the id that was published last is fenced for lack
// of contact (strict mode). It is for callers that may have been suspended since then. It does not block and may
// be called from any goroutine.
func (a *Allocator) Fenced() bool { return a.strict.over() }

// tellContact tells that an answer confirmed what this process holds, in strict mode. sent is when its request was sent.
func (a *Allocator) tellContact(sent time.Duration) {
	if a.strict.after > 0 {
		a.happened.Tell(event.Contact{Age: a.strict.boot.BootTime() - sent, Overdue: 2 * a.strict.after / contacts})
	}
}

// fence ends the id for lack of contact.
func (h *holding) fence() {
	h.happened.Tell(event.Fenced{ID: h.held.id, Epoch: h.held.token, FenceAfter: h.o.FenceAfter, Reason: h.whyFenced()})
	h.becomeFenced()
}

// whyFenced says whether the API server is away or the map confirms no id.
func (h *holding) whyFenced() string {
	if view := h.held.view; !view.Trust.Believed() {
		return "a map that somebody else wrote confirms no id: " + view.Tampering(h.store.Key)
	}
	return "no answer came in time"
}
