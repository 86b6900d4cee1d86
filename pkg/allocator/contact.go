package allocator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// contact is a process's contact with the API server: its streams, and whether requests are answered.
type contact struct {
	clock    clock.Clock
	log      logr.Logger
	happened *event.Observers
	ref      store.Ref
	// wake gets a value when a stream, or a goroutine of this process, has news.
	wake chan struct{}
	// owner and self are nil until listen.
	owner *watch.OwnerStream
	self  *watch.PodStream
	// streams is the context of both.
	streams context.Context //nolint:containedctx // set and ended by until
	// running are goroutines that end with streams.
	running sync.WaitGroup
	// tell is told when contact is lost and found, stale what it was told last.
	tell    func(bool)
	stale   bool
	refused refusal
	failing string       // the error that is being repeated, as last logged
	since   atomic.Int64 // Unix milliseconds since when the loop is not waiting; 0 while it waits
}

func (c *contact) begin(ctx context.Context) {
	c.streams, c.owner, c.self = ctx, nil, nil
	if c.wake == nil {
		c.wake = make(chan struct{}, 1)
	}
}

// end waits for what begin and listen started. Its context has ended.
func (c *contact) end() {
	if c.owner != nil {
		<-c.owner.Done()
	}
	if c.self != nil {
		<-c.self.Done()
	}
	c.running.Wait()
	c.atRest()
}

// spawn starts a goroutine that ends with the streams.
func (c *contact) spawn(f func(context.Context)) { c.running.Go(func() { f(c.streams) }) }

// ring wakes the loop up.
func (c *contact) ring() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// listen starts the streams that are missing. A pod that finds itself in the map at its first read needs none before it has its id, and then
// that of its pod only a little later: so it is for most pods when a thousand start at once.
func (a *Allocator) listen(why duty.Duty) {
	c := &a.contact
	if c.owner == nil && a.view.state != unread { // without the permission to read it a watch would hide that
		c.owner = watch.Owner(c.streams, a.o.Store, a.ref, a.log)
		c.owner.Wake(c.wake)
	}
	if c.self == nil && why.Why != duty.OwnTurn && !a.clock.Now().Before(a.work.listenAt) {
		c.self = watch.Pod(c.streams, a.o.Store, a.o.Namespace, a.o.Pod, a.log)
		c.self.Wake(c.wake)
	}
	switch {
	case a.tenure.Lock.State == receipt.Locks:
		a.plans.leave()
	case why.Why == duty.NoSlot && a.plans.made:
		a.plans.follow(a)
	}
	a.followNeighbour()
}

// newer reports whether version a is later than b, or b is not known. Versions that cannot be compared count as newer.
func newer(a, b string) bool {
	if b == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// hear takes in what streams, timers and goroutines have brought.
func (a *Allocator) hear() {
	c := &a.contact
	a.hearFence()
	if c.owner != nil {
		a.noteStale()
		owner, known, err := c.owner.Latest()
		switch {
		case err != nil:
			a.log.Error(err, "the owner cannot be read; the id is kept")
		case known && newer(owner.ResourceVersion, a.view.owner.ResourceVersion):
			a.adopt(owner)
		case !known && c.owner.Synced() && a.view.state == seen:
			a.known.Unseen, a.view.state = true, unread // deleted, it seems
		}
	}
	if c.self != nil && c.self.Synced() {
		a.hearSelf()
	}
	if a.view.state == gone && !a.clock.Now().Before(a.view.sought.Add(awayTime)) {
		a.known.Unseen = true
	}
	a.followRest()
	a.reconsider()
}

// hearSelf looks for what somebody else changed on the own pod. The stream lags behind this process's own writes.
func (a *Allocator) hearSelf() {
	pod, there := a.contact.self.Get(a.o.Pod)
	switch {
	case !there || pod.UID != a.o.PodUID:
		a.tenure = a.tenure.Lost()
	case !newer(pod.ResourceVersion, a.pod.ResourceVersion):
	case pod.Annotations[receipt.Key] != a.pod.Annotations[receipt.Key] || labelsOf(pod) != labelsOf(a.pod):
		a.tenure = a.tenure.Lost()
	default:
		if otherController(a.pod, pod) {
			a.suspect()
		}
		a.pod = pod
	}
}

// healthy returns an error if the loop has been at one thing for too long.
func (c *contact) healthy() error {
	const most = 2 * time.Minute // several requests in a row, each bounded by store.RequestTimeout
	since := c.since.Load()
	if busy := time.Duration(c.clock.Now().UnixMilli()-since) * time.Millisecond; since != 0 && busy > most {
		return fmt.Errorf("idalloc: the loop has not come back for %s", busy.Round(time.Second))
	}
	return nil
}

func (c *contact) busy()   { c.since.Store(c.clock.Now().UnixMilli()) }
func (c *contact) atRest() { c.since.Store(0) }

// noteStale tells when contact is lost and found.
func (a *Allocator) noteStale() {
	c := &a.contact
	since, why := c.owner.Stale()
	if (why != nil) == c.stale {
		return
	}
	c.setStale(why != nil)
	if c.stale {
		a.happened.Tell(event.Away{Since: since, Reason: why})
	} else {
		a.happened.Tell(event.Back{})
	}
}

// answered tells that contact is found, if it was lost before there was a stream.
func (a *Allocator) answered() {
	if a.contact.stale && a.contact.owner == nil {
		a.contact.setStale(false)
		a.happened.Tell(event.Back{})
	}
}

func (c *contact) setStale(stale bool) {
	if stale != c.stale {
		c.stale = stale
		c.tell(stale)
	}
}

// notKept notes that what was written is not what the API server has.
func (c *contact) notKept(err error) {
	if c.failing != err.Error() {
		c.log.Error(err, "what was written did not last; it is written again later")
	}
	c.failing = err.Error()
}

// unreachable notes an error that is being repeated.
func (c *contact) unreachable(err error) {
	var forbidden *store.ForbiddenError
	switch {
	case err.Error() == c.failing:
		c.log.V(1).Info("a request failed again", "reason", err.Error())
	case errors.As(err, &forbidden):
		c.log.Error(err, "a request is forbidden and will be repeated")
	default:
		c.log.Info("a request failed and will be repeated", "reason", err.Error())
	}
	c.failing = err.Error()
	if errors.Is(err, store.ErrNoAnswer) && !c.stale {
		c.setStale(true)
		c.happened.Tell(event.Away{Since: c.clock.Now(), Reason: err, Logged: true})
	}
}

const (
	// forbiddenGrace is how long a refusal may be a mistake: an API server that has just started refuses everything until it has read its
	// roles.
	forbiddenGrace = 5 * time.Second
	// doubted is how often the same request must be refused before the refusal counts.
	doubted = 3
)

// refusal is one episode of a missing permission.
type refusal struct {
	what        string
	since, last time.Time
	times       int
}

// temporary reports whether repeating may help.
func (c *contact) temporary(err error) bool {
	var forbidden *store.ForbiddenError
	if !errors.As(err, &forbidden) {
		return store.Temporary(err)
	}
	now, what := c.clock.Now(), forbidden.Verb+" "+forbidden.Resource
	if c.refused.what != what || now.Sub(c.refused.last) > pace.MaxDelay+forbiddenGrace {
		c.refused = refusal{what: what, since: now}
	}
	c.refused.last = now
	c.refused.times++
	return c.refused.times < doubted || now.Sub(c.refused.since) < forbiddenGrace
}

// watchDenied returns the error of a watch that RBAC does not permit. Without the watch a waiter would sleep, and a holder would not learn
// that its id is gone.
func (c *contact) watchDenied() error {
	if c.owner != nil {
		if d := c.owner.Denied(); d.Err != nil && d.Lasted() >= forbiddenGrace {
			return c.deny(d, store.Forbidden(d.Verb, c.ref.GVR(), c.ref.Namespace, c.ref.Name, d.Err))
		}
	}
	if c.self != nil {
		if d := c.self.Denied(); d.Err != nil && d.Lasted() >= forbiddenGrace {
			return c.deny(d, store.Forbidden(d.Verb, store.Pods, c.ref.Namespace, "", d.Err))
		}
	}
	return nil
}

// deny takes in the refusals of a stream that have lasted. A stream waits for up to half a minute between two tries, so that they would look
// like the beginnings of several episodes.
func (c *contact) deny(d watch.Denial, err *store.ForbiddenError) error {
	c.refused = refusal{what: err.Verb + " " + err.Resource, since: d.First, last: d.Last, times: doubted}
	return err
}

// persist repeats do until it succeeds, fails for good, or ctx ends.
func (a *Allocator) persist(ctx context.Context, what string, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if err == nil {
			a.answered()
			a.retry.Reset()
			return nil
		}
		if !a.contact.temporary(err) {
			return err
		}
		if ctx.Err() == nil {
			a.contact.unreachable(err)
			timer := a.clock.NewTimer(a.retry.Next())
			select {
			case <-ctx.Done():
				timer.Stop()
			case <-timer.C():
				continue
			}
		}
		return fmt.Errorf("idalloc: could not %s: %w: the last try: %w", what, context.Cause(ctx), err)
	}
}
