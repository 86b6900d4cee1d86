package allocator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// connection is a process's connection with the API server: its streams, how fast the server answers, and whether it does.
type connection struct {
	store *store.Store
	clock clock.Clock
	log   logr.Logger
	// happened are told what happens to the claim.
	happened event.Observers
	ref      store.Ref
	pace     *pace.Pace
	// began is when this process sent its first request.
	began time.Time
	// name is this pod's.
	name string
	// owner and self are nil until listen.
	owner *watch.OwnerStream
	self  *watch.PodStream
	// streams is the context of both.
	streams context.Context //nolint:containedctx // set and ended by follow
	// running are goroutines that end with streams.
	running sync.WaitGroup
	// tellStale is told when contact is lost and found, stale what it was told last.
	tellStale func(bool)
	stale     bool
	refused   refusal
	failing   string       // the error that is being repeated, as last logged
	busySince atomic.Int64 // Unix milliseconds since when the loop is not waiting; 0 while it waits
}

// follow lets listen start the streams. The returned function ends them. A pod that finds itself in
// the map at its first read needs none until it has its id: so it is for most pods when a thousand start at once.
func (c *connection) follow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	c.streams, c.owner, c.self = ctx, nil, nil
	return func() {
		cancel()
		if c.owner != nil {
			<-c.owner.Done()
		}
		if c.self != nil {
			<-c.self.Done()
		}
		c.running.Wait()
		c.markAtRest()
	}
}

// listen starts the streams if they are not there yet.
func (c *connection) listen() {
	c.listenToOwner()
	if c.self == nil {
		c.self = watch.Pod(c.streams, c.store, c.ref.Namespace, c.name, c.log)
	}
}

func (c *connection) listenToOwner() {
	if c.owner == nil {
		c.owner = watch.Owner(c.streams, c.store, c.ref, c.log)
	}
}

// healthy returns an error if the loop has been at one thing for too long.
func (c *connection) healthy() error {
	const most = 2 * time.Minute // several requests in a row, each bounded by store.RequestTimeout
	since := c.busySince.Load()
	if busy := time.Duration(c.clock.Now().UnixMilli()-since) * time.Millisecond; since != 0 && busy > most {
		return fmt.Errorf("idalloc: the loop has not come back for %s", busy.Round(time.Second))
	}
	return nil
}

func (c *connection) markBusy()   { c.busySince.Store(c.clock.Now().UnixMilli()) }
func (c *connection) markAtRest() { c.busySince.Store(0) }

// read reads the owner. Errors: as of store.Get.
func (c *connection) read(ctx context.Context) (store.Owner, error) {
	c.markBusy()
	start := c.clock.Now()
	owner, err := c.store.Get(ctx, c.ref)
	if err != nil {
		return store.Owner{}, err
	}
	c.failing = ""
	c.pace.Read(c.clock.Since(start), c.clock.Since(c.began))
	if c.owner != nil {
		c.noteStale()
	}
	return owner, nil
}

// listenFor waits for d, or until the owner's stream, if there is one, has something that is enough, which it returns.
func (c *connection) listenFor(ctx context.Context, d time.Duration, enough func(store.Owner) bool) (heard *store.Owner, err error) {
	if c.owner == nil {
		return nil, c.sleep(ctx, d)
	}
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	c.markAtRest()
	defer c.markBusy()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C():
			return nil, nil //nolint:nilnil // nothing was heard
		case <-c.owner.Changed():
			c.noteStale()
			if owner, known, err := c.owner.Latest(); err == nil && known && enough(owner) {
				return &owner, nil
			}
		}
	}
}

// watchDenied returns the error of a watch that RBAC does not permit. Without the watch a waiter would sleep, and a
// holder would not learn that its id is gone.
func (c *connection) watchDenied() error {
	if d := c.owner.Denied(); d.Err != nil && d.Lasted() >= forbiddenGrace {
		return c.refused.by(d, store.Forbidden(d.Verb, c.ref.GVR(), c.ref.Namespace, c.ref.Name, d.Err))
	}
	if c.self == nil {
		return nil
	}
	if d := c.self.Denied(); d.Err != nil && d.Lasted() >= forbiddenGrace {
		return c.refused.by(d, store.Forbidden(d.Verb, store.Pods, c.ref.Namespace, "", d.Err))
	}
	return nil
}

// noteStale tells when contact is lost and found.
func (c *connection) noteStale() {
	since, why := c.owner.Stale()
	if (why != nil) == c.stale {
		return
	}
	c.setStale(why != nil)
	if c.stale {
		c.happened.Tell(event.Away{Since: since, Reason: why})
	} else {
		c.happened.Tell(event.Back{})
	}
}

// unreachable notes an error that is being repeated.
func (c *connection) unreachable(err error) {
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

// answered tells that contact is found, if it was lost before there was a stream.
func (c *connection) answered() {
	if c.stale {
		c.setStale(false)
		c.happened.Tell(event.Back{})
	}
}

func (c *connection) setStale(stale bool) {
	if stale != c.stale {
		c.stale = stale
		c.tellStale(stale)
	}
}

// forbiddenGrace is how long a refusal may be a mistake: an API server that has just started
// refuses everything until it has read its roles.
const forbiddenGrace = 5 * time.Second

// refusal is one episode of a missing permission.
type refusal struct {
	what        string
	since, last time.Time
	times       int
}

// doubted is how often the same request must be refused before the refusal counts.
const doubted = 3

// by takes in the refusals of a stream that have lasted. A stream waits for up to half a minute between two tries, so that they would
// look like the beginnings of several episodes.
func (r *refusal) by(d watch.Denial, err *store.ForbiddenError) error {
	*r = refusal{what: refusedRequest(err), since: d.First, last: d.Last, times: doubted}
	return err
}

func refusedRequest(err *store.ForbiddenError) string { return err.Verb + " " + err.Resource }

// temporary reports whether repeating may help.
func (c *connection) temporary(err error) bool {
	var forbidden *store.ForbiddenError
	if !errors.As(err, &forbidden) {
		return store.Temporary(err)
	}
	now, what := c.clock.Now(), refusedRequest(forbidden)
	if c.refused.what != what || now.Sub(c.refused.last) > pace.MaxDelay+forbiddenGrace {
		c.refused = refusal{what: what, since: now}
	}
	c.refused.last = now
	c.refused.times++
	return c.refused.times < doubted || now.Sub(c.refused.since) < forbiddenGrace
}

// latest is the newest moment of the owner that the stream has. If it has none, only the count is set, to this one.
func (c *connection) latest(count int) store.Owner {
	owner, known, err := c.owner.Latest()
	if err != nil || !known {
		return store.Owner{Count: count}
	}
	return owner
}

// sleep waits for d or until ctx ends.
func (c *connection) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	c.markAtRest()
	defer c.markBusy()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}

// persist repeats do until it succeeds, fails for good, or ctx ends.
func (c *connection) persist(ctx context.Context, what string, do func() error) error {
	b := c.pace.Backoff()
	for {
		err := do()
		if err == nil || !c.temporary(err) {
			return err
		}
		if ctx.Err() == nil {
			if errors.Is(err, store.ErrConflict) {
				c.happened.Tell(event.Conflict{})
			} else {
				c.unreachable(err)
			}
			if c.sleep(ctx, b.Next()) == nil {
				continue
			}
		}
		return fmt.Errorf("idalloc: could not %s: %w: the last try: %w", what, context.Cause(ctx), err)
	}
}
