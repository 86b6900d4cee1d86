package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/boottime"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

// Options configure a Guard.
type Options struct {
	Store *store.Store
	Pace  *pace.Pace
	Pod   string
	// After is fence-after, zero without strict mode. Lead is how much earlier the Lease is over for its own pod.
	After, Lead time.Duration
	// Fenced is called when the Lease is over. The work must have stopped by the given moment of the boot-time clock, which may be past. It is called from
	// several goroutines, and more than once.
	Fenced func(by time.Duration)
	// News is called from another goroutine after Fenced, and when the result of Refused changes. It does not block.
	News func()
	// Contact is called after each answer to a renewal, from several goroutines.
	Contact func(event.Contact)
}

// Guard maintains the Lease of what this process holds. One goroutine may use it at a time, except for Over.
type Guard struct {
	o    Options
	boot boottime.Source // advances during suspend
	// ref and uid are the owner and the pod, set by Begin.
	ref kinds.Ref
	uid string
	// streams ends the goroutines that renew own, and end those for one Lease. running are these goroutines.
	streams context.Context //nolint:containedctx // set by Begin
	end     context.CancelFunc
	running sync.WaitGroup
	// seen are the others' Leases, by slot.
	seen map[int]seen

	// writing has a value during each write of this pod's Lease. It is held during requests.
	writing chan struct{}
	// mu guards the fields below. It is not held during a request.
	mu  sync.Mutex
	own slotlease.Lease
	// until is when the Lease is over. gone: it is over, until the Lease is taken again.
	until time.Duration
	gone  bool
	// why is why this pod's Lease is lost or its last write was refused. It is nil if the last write was accepted or had no answer; in the latter case
	// unanswered is the error.
	why, unanswered error
	// lost: why is about a Lease that this pod lost.
	lost bool
}

// seen is the version of a Lease that this process saw last, and since when it has not changed.
type seen struct {
	version string
	since   time.Duration
}

// New returns the Guard of a process without a Lease.
func New(o Options) *Guard {
	return &Guard{o: o, boot: boottime.Of(o.Store.Clock), seen: map[int]seen{}, writing: make(chan struct{}, 1)}
}

// Begin sets the owner and the pod, and the context that ends the renewals.
func (g *Guard) Begin(ctx context.Context, ref kinds.Ref, uid types.UID) {
	g.streams, g.ref, g.uid = ctx, ref, string(uid)
	if g.mine().Holder != "" {
		g.keep() //nolint:contextcheck // what it starts ends with the streams
	}
}

// Wait blocks until the renewals have ended. Call it after the context of Begin has ended.
func (g *Guard) Wait() {
	g.endRenewals()
	g.running.Wait()
}

// Over reports whether this pod's Lease is over, by the clock at the call. It does not block, and may be called from any goroutine.
func (g *Guard) Over() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.own.Holder != "" && g.boot.BootTime() >= g.until {
		g.gone = true
	}
	return g.gone
}

// Why explains to people why this pod's Lease is over. It does not block.
func (g *Guard) Why() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.why != nil:
		return g.why.Error()
	case g.unanswered != nil:
		return "no answer came in time, at last: " + g.unanswered.Error()
	}
	return "no answer came in time"
}

// Silent reports whether contact was lost before this pod's Lease was over. It does not block.
func (g *Guard) Silent() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why == nil || request.NoContact(g.why)
}

// Refused returns the answer to the last write of this pod's Lease if the server refused its content or its credentials, and nil otherwise. It does not
// block.
func (g *Guard) Refused() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused()
}

// refused is Refused. The caller must hold the lock.
func (g *Guard) refused() error {
	if g.own.Holder == "" || g.lost {
		return nil
	}
	return g.why
}

// Forget ends the renewals, and forgets this pod's Lease.
func (g *Guard) Forget() {
	g.endRenewals()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own, g.gone = slotlease.Lease{}, false
}

// Fence calls Options.Fenced, in place of the goroutine that watches the time.
func (g *Guard) Fence() {
	g.mu.Lock()
	until, own := g.until, g.own.Holder != ""
	g.mu.Unlock()
	if own {
		g.o.Fenced(min(until, g.boot.BootTime()) + g.o.Lead)
	}
}

// Secure updates this pod's Lease to cover the share. If another pod has the Lease, it changes nothing, and returns that Lease and the time left until it
// is over. Errors: as of store.Store.
func (g *Guard) Secure(ctx context.Context, share receipt.Share) (blocked slotlease.Lease, left time.Duration, err error) {
	g.writing <- struct{}{}
	defer g.written()
	ctx, cancel := context.WithTimeout(ctx, g.works()/2) // a renewal may wait for it
	defer cancel()
	lease := g.mine()
	if lease.Version == "" {
		if lease, err = g.o.Store.GetLease(ctx, g.ref, share.ID); err != nil {
			return blocked, 0, err
		}
		if lease.Holder != "" && lease.Holder != g.uid {
			if left := g.see(lease); left > 0 {
				return lease, left, nil
			}
		}
	}
	if err := g.put(ctx, lease, share); err != nil {
		return blocked, 0, err
	}
	if g.end == nil {
		g.keep() //nolint:contextcheck // what it starts ends with the streams
	}
	return blocked, 0, nil
}

// LetGo releases this pod's Lease of a slot, so that the next pod need not wait for its expiry. Afterwards, an earlier write without an answer can no
// longer arrive. With forGood it deletes the Lease, because no pod will have the slot. Then a late write may still create the Lease, which blocks other
// pods until it expires. Errors: as of store.Store.
func (g *Guard) LetGo(ctx context.Context, id int, forGood bool) (err error) {
	g.endRenewals()
	g.writing <- struct{}{}
	defer g.written()
	own := g.mine()
	if own.Version == "" {
		if own, err = g.o.Store.GetLease(ctx, g.ref, id); err != nil {
			return err
		}
	}
	switch {
	case own.Holder != g.uid && own.Holder != "", forGood && own.Version == "":
	case forGood:
		err = g.o.Store.DeleteLease(ctx, g.ref, own)
	default:
		_, err = g.o.Store.PutLease(ctx, g.ref, slotlease.Lease{ID: id, Lasts: g.lasts(), Version: own.Version, UID: own.UID})
	}
	if err != nil {
		g.wrote(own.Version, own, 0, err)
		return err
	}
	g.Forget()
	return nil
}

// Survey lists the other pods' Leases. It returns the part of the share that they lock, and one pod that locks some of it. If another pod has this pod's
// Lease, this one is over. Errors: as of store.Store.
func (g *Guard) Survey(ctx context.Context, mine receipt.Share) (others duty.Others, by string, err error) {
	var own slotlease.Lease
	again := func() { others, by, own = duty.Others{}, "", slotlease.Lease{ID: mine.ID} }
	err = g.o.Store.EachLease(ctx, g.ref, again, func(l slotlease.Lease) {
		switch {
		case l.ID == mine.ID:
			own = l
		case l.Holder != "" && l.Holder != g.uid && g.see(l) > 0:
			if locked := l.Receipt.LocksOf(mine.Partitions); !locked.Empty() {
				others.Partitions, by = others.Partitions.Union(locked), l.Pod
			}
		}
	})
	if err != nil {
		return duty.Others{}, "", err
	}
	if own.Holder != g.uid {
		g.lose(own)
	}
	return others, by, nil
}

// Clear deletes the Leases of the slots from this one on that this pod could take: no pod has them, or they have expired. It returns the time left until
// the next one expires, 0 if none is left. Errors: as of store.Store.
func (g *Guard) Clear(ctx context.Context, from int) (left time.Duration, err error) {
	var over []slotlease.Lease
	own := g.mine()
	again := func() { over, left = nil, 0 }
	err = g.o.Store.EachLease(ctx, g.ref, again, func(l slotlease.Lease) {
		switch {
		case l.ID < from || l.ID == own.ID && own.Holder != "": // another Lease of this pod comes from a late creation
		case l.Holder == "" || g.see(l) <= 0:
			over = append(over, l)
		case left == 0 || g.see(l) < left:
			left = g.see(l)
		}
	})
	for _, l := range over {
		if err == nil {
			err = g.o.Store.DeleteLease(ctx, g.ref, l)
		}
	}
	return left, err
}

// see records another pod's Lease. It returns the time left until it is over, by this process's own clock.
func (g *Guard) see(l slotlease.Lease) (left time.Duration) {
	now := g.boot.BootTime()
	known := g.seen[l.ID]
	if known.version != l.Version {
		known = seen{l.Version, now}
		g.seen[l.ID] = known
	}
	return known.since + l.Outlasts() - now
}

// put writes this pod's Lease in place of the stored one, and restarts its time.
func (g *Guard) put(ctx context.Context, now slotlease.Lease, share receipt.Share) error {
	sent := g.boot.BootTime()
	written, err := g.o.Store.PutLease(ctx, g.ref, slotlease.Lease{
		ID: share.ID, Holder: g.uid, Pod: g.o.Pod, Lasts: g.lasts(), Renewed: g.o.Store.Clock.Now(), Version: now.Version, UID: now.UID,
		Receipt: receipt.Receipt{UID: g.uid, Owner: g.ref.String(), State: receipt.Locks, Share: share, Write: receipt.Draw(), Strict: true},
	})
	g.wrote(now.Version, written, sent, err)
	if errors.Is(err, request.ErrNotKept) && g.Over() {
		g.Fence()
		g.o.News()
	}
	if err == nil { // not under the lock: an observer may ask whether the time is over
		g.o.Contact(event.Contact{Age: g.boot.BootTime() - sent, Overdue: g.o.After / 2})
	}
	return err
}

// wrote records the answer to a write of this pod's Lease that was sent at that time.
func (g *Guard) wrote(version string, written slotlease.Lease, sent time.Duration, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err == nil:
		g.own, g.until = written, max(g.until, sent+g.o.After-g.o.Lead)
	case errors.Is(err, request.ErrNotKept) && g.own.Holder != "":
		g.own.Version = ""
		g.gone = g.gone || written.Holder != g.uid || written.Lasts < g.lasts() // others do not wait for as long as this pod works
	case errors.Is(err, request.ErrConflict) || errors.Is(err, request.ErrNotKept): // at most one of two writes of one version is accepted, so a write without an answer may be sent again
		if g.own.Version == version {
			g.own.Version = "" // it is read again
		}
	}
	g.note(err)
}

// answered records the answer to a read of this pod's Lease.
func (g *Guard) answered(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.note(err)
}

// note records why the API server refused. After a conflict the next read tells. The caller must hold the lock.
func (g *Guard) note(err error) {
	before := g.refused()
	switch {
	case err == nil, errors.Is(err, request.ErrNoAnswer), errors.Is(err, request.ErrAmbiguous), errors.Is(err, context.DeadlineExceeded):
		g.why, g.unanswered, g.lost = nil, err, false
	case !errors.Is(err, request.ErrConflict):
		g.why, g.lost = err, false
	}
	if (before == nil) != (g.refused() == nil) {
		g.o.News()
	}
}

// lasts returns the duration of this pod's Lease.
func (g *Guard) lasts() time.Duration { return g.o.After + assignment.StopGrace }

// written ends a write of this pod's Lease.
func (g *Guard) written() { <-g.writing }

// mine returns this pod's Lease as last written.
func (g *Guard) mine() slotlease.Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.own
}

// lose ends this pod's Lease, because another pod or none has it now.
func (g *Guard) lose(now slotlease.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone, g.lost = true, true
	if name := slotlease.Name(g.ref.String(), now.ID); now.Holder == "" {
		g.why = fmt.Errorf("no pod has the Lease %s any more", name)
	} else {
		g.why = fmt.Errorf("pod %s has the Lease %s", now.Pod, name)
	}
}

func (g *Guard) deadline() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until
}
