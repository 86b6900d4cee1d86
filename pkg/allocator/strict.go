package allocator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/boottime"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// contacts is how often a process renews its Lease within one fence-after.
	contacts = 4
)

// strict is the Lease of what this process holds, and its time. The zero value is that of a process without one.
type strict struct {
	boot boottime.Source // goes on in suspend
	// after is fence-after, zero without strict mode; lead is how long before it the id is fenced.
	after, lead time.Duration
	// tell is Options.Fenced.
	tell func(by time.Duration)
	// seen are the others' Leases, by slot. Only the loop uses it.
	seen map[int]observed
	// end ends the goroutines that renew own.
	end context.CancelFunc
	// blocked is the Lease of another pod that this one waits for, and until when at least.
	blocked      store.Lease
	blockedUntil time.Time

	// writing has a value during each write of the own Lease. It is held during requests.
	writing chan struct{}
	// mu is held while one of the others is used, and not during a request.
	mu  sync.Mutex
	own store.Lease
	// until is when the time is over. gone says that it is, which stays so until the Lease is taken again.
	until time.Duration
	gone  bool
}

// observed is a Lease as this process saw it last, and since when it has not changed.
type observed struct {
	version string
	since   time.Duration
}

// see takes in a Lease of another pod. It returns how long it is until its time is over, by this process's own clock.
func (s *strict) see(l store.Lease) (left time.Duration) {
	now := s.boot.BootTime()
	known := s.seen[l.ID]
	if known.version != l.Version {
		known = observed{l.Version, now}
		s.seen[l.ID] = known
	}
	return known.since + l.Outlasts() - now
}

// over reports, by the clock at the call, whether the time is over. It may be called from any goroutine.
func (s *strict) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expire()
}

func (s *strict) expire() bool {
	if s.own.Holder != "" && s.boot.BootTime() >= s.until {
		s.gone = true
	}
	return s.gone
}

// alarm is when the Lease that this process waits for may be over.
func (s *strict) alarm() time.Time { return s.blockedUntil }

// hearFence takes in that the time of the own Lease is over.
func (a *Allocator) hearFence() {
	s := &a.strict
	if !s.over() {
		return
	}
	if !a.tenure.Working.Empty() {
		a.happened.Tell(event.Fenced{ID: a.tenure.Working.ID, Token: a.work.token, FenceAfter: s.after, Reason: "no answer came in time"})
		a.work.fenced = true
	}
	a.work.token, a.work.shares, a.work.confirmed = 0, nil, false
	a.tenure = a.tenure.Fenced()
	a.work.tell()
	s.forget()
}

// forget ends the renewals, and what is known of the own Lease.
func (s *strict) forget() {
	if s.end != nil {
		s.end()
		s.end = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own, s.gone = store.Lease{}, false
}

// stop has the work under a lost slot stopped in time, because nobody watches the deadline from here on.
func (s *strict) stop() {
	if s.after == 0 {
		return
	}
	s.mu.Lock()
	until, own := s.until, s.own.Holder != ""
	s.mu.Unlock()
	if own {
		s.tell(min(until, s.boot.BootTime()) + s.lead)
	}
}

// secure has the own Lease say what the share has, or lets it go.
func (a *Allocator) secure(ctx context.Context, share receipt.Share) error {
	s, me := &a.strict, string(a.o.PodUID)
	if share.Empty() {
		return a.letLeaseGo(ctx)
	}
	s.writing <- struct{}{}
	defer s.written()
	lease := s.mine()
	if lease.Version == "" {
		var err error
		if lease, err = a.o.Store.GetLease(ctx, a.ref, share.ID); err != nil {
			return err
		}
		if lease.Holder != "" && lease.Holder != me {
			if left := s.see(lease); left > 0 {
				a.blockedBy(lease, left)
				return nil
			}
		}
	}
	if err := a.putLease(ctx, lease.Version, share); err != nil {
		return err
	}
	a.tenure = a.tenure.Secured(share)
	s.blocked, s.blockedUntil = store.Lease{}, time.Time{}
	if s.end == nil {
		a.guard() //nolint:contextcheck // what it starts ends with the streams
	}
	return nil
}

// putLease writes the own Lease, and starts its time again.
func (a *Allocator) putLease(ctx context.Context, version string, share receipt.Share) error {
	s, uid := &a.strict, string(a.o.PodUID)
	sent := s.boot.BootTime()
	written, err := a.o.Store.PutLease(ctx, a.ref, store.Lease{
		ID: share.ID, Holder: uid, Pod: a.o.Pod, Lasts: s.after + assignment.StopGrace, Renewed: a.clock.Now(), Version: version,
		Receipt: receipt.Receipt{UID: uid, Owner: a.ref.String(), State: receipt.Locks, Share: share, Write: receipt.Draw(), Strict: true},
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.own, s.until = written, max(s.until, sent+s.after-s.lead)
		a.happened.Tell(event.Contact{Age: s.boot.BootTime() - sent, Overdue: 2 * s.after / contacts})
	case errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrAmbiguous):
		if s.own.Version == version {
			s.own.Version = "" // it is read again
		}
	}
	return err
}

// blockedBy is for a Lease of another pod whose time is not over.
func (a *Allocator) blockedBy(lease store.Lease, left time.Duration) {
	s := &a.strict
	s.blocked, s.blockedUntil = lease, a.clock.Now().Add(left)
	a.tenure = a.tenure.NotSecured()
	a.known.Again = a.clock.Now().Add(min(left, a.pace.Longer(againTime))) // its pod may let it go before
	a.happened.Tell(event.NotTaken{Reason: fmt.Sprintf("pod %s has the Lease %s", lease.Pod, store.LeaseName(a.ref.String(), lease.ID))})
}

// letLeaseGo lets the own Lease go, so that the next pod need not wait for its end.
func (a *Allocator) letLeaseGo(ctx context.Context) error {
	s := &a.strict
	if s.end != nil {
		s.end()
		s.end = nil
	}
	s.writing <- struct{}{}
	defer s.written()
	if own := s.mine(); own.Version != "" {
		_, err := a.o.Store.PutLease(ctx, a.ref, store.Lease{ID: own.ID, Lasts: own.Lasts, Version: own.Version})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	s.forget()
	a.tenure = a.tenure.Secured(receipt.Nothing())
	return nil
}

// written ends a write of the own Lease.
func (s *strict) written() { <-s.writing }

// mine returns the own Lease as it was written last.
func (s *strict) mine() store.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own
}

// survey lists the others' Leases (T3 in strict mode). The own one has to be this pod's still.
func (a *Allocator) survey(ctx context.Context) error {
	leases, err := a.o.Store.ListLeases(ctx, a.ref)
	if err != nil {
		return err
	}
	mine, own := a.tenure.Lock.Share, false
	var others duty.Others
	by := ""
	for _, l := range leases {
		switch {
		case l.ID == mine.ID:
			own = l.Holder == string(a.o.PodUID)
		case l.Holder != "" && l.Holder != string(a.o.PodUID) && a.strict.see(l) > 0:
			if locked := l.Receipt.LocksOf(mine.Partitions); !locked.Empty() {
				others.Partitions, by = others.Partitions.Union(locked), l.Pod
			}
		}
	}
	if !own {
		a.strict.lose()
		return nil
	}
	a.tenure = a.tenure.SawLeases(others)
	a.compared(by)
	return nil
}

// lose ends the time of the own Lease, because another pod has it.
func (s *strict) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
}

// guard renews the own Lease and watches its time, in two goroutines that end with the streams or with forget.
func (a *Allocator) guard() {
	s := &a.strict
	ctx, end := context.WithCancel(a.contact.streams)
	s.end = end
	a.contact.running.Go(func() { s.renew(ctx, a) })
	a.contact.running.Go(func() {
		for ctx.Err() == nil && !s.over() {
			s.boot.BootWait(s.deadline(), ctx.Done())
		}
		if s.over() {
			s.tell(s.deadline() + s.lead)
			a.contact.ring()
		}
	})
}

func (s *strict) deadline() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until
}

// renew renews the own Lease.
func (s *strict) renew(ctx context.Context, a *Allocator) {
	retry := a.pace.Backoff()
	for {
		next := s.after / contacts
		s.boot.BootWait(s.boot.BootTime()+a.pace.Earlier(next), ctx.Done())
		for ctx.Err() == nil && !s.over() {
			if s.renewOnce(ctx, a) {
				retry.Reset()
				break
			}
			s.boot.BootWait(s.boot.BootTime()+min(next, retry.Next()), ctx.Done())
		}
		if ctx.Err() != nil || s.over() {
			return
		}
	}
}

// renewOnce writes the own Lease once. It reads it before that if a write had no answer.
func (s *strict) renewOnce(ctx context.Context, a *Allocator) bool {
	s.writing <- struct{}{}
	defer s.written()
	request, cancel := context.WithTimeout(ctx, s.after/2)
	defer cancel()
	own := s.mine()
	if own.Version == "" {
		now, err := a.o.Store.GetLease(request, a.ref, own.ID)
		switch {
		case err != nil:
			return false
		case now.Holder != own.Holder:
			s.lose()
			return false
		}
		own.Version = now.Version
	}
	return a.putLease(request, own.Version, own.Receipt.Share) == nil
}
