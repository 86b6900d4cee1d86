// Package contact is one process's contact with the API server: the watches of its owner and of its pod, and whether requests are answered.
package contact

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// Options configure a Contact.
type Options struct {
	Store *store.Store
	Pod   string
	// Stale is called with true when contact is lost, and with false when it is restored.
	Stale func(bool)
	// Happened receives the events.
	Happened func(event.Event)
}

// Contact is a process's contact with the API server. One goroutine may use it at a time, except for Go, Ring and Healthy.
type Contact struct {
	o   Options
	log logr.Logger
	ref kinds.Ref
	// wake gets a value when a stream, or a goroutine of this process, has news.
	wake chan struct{}
	// owner and self are nil until they are watched. alone: self is the only watch.
	owner *watch.OwnerStream
	self  *watch.PodStream
	alone bool
	// streams is the context of both. running are goroutines that end with it.
	streams context.Context //nolint:containedctx // set by Begin
	running sync.WaitGroup
	// stale is the last value passed to Options.Stale.
	stale   bool
	refused refusal
	failing string    // the error that is being repeated, as last logged
	said    time.Time // when it was logged
	silent  bool      // the last request had no answer, or one that refuses the credentials
	refuses bool      // renewals of this pod's Lease have such an answer
	// unrenewed: the API server refuses the content of renewals.
	unrenewed bool
	since     atomic.Int64 // Unix milliseconds since when the loop is not waiting; 0 while it waits
}

// New returns a Contact that watches nothing. log is used until Begin.
func New(o Options, log logr.Logger) *Contact {
	return &Contact{o: o, log: log, wake: make(chan struct{}, 1)}
}

// Begin sets the owner, and the context that ends the watches and the goroutines.
func (c *Contact) Begin(ctx context.Context, ref kinds.Ref, log logr.Logger) {
	c.streams, c.ref, c.alone, c.log, c.owner, c.self = ctx, ref, false, log, nil, nil
}

// main returns the watch that determines whether there is contact, nil before it runs.
func (c *Contact) main() interface{ Stale() (time.Time, error) } {
	switch {
	case c.owner != nil:
		return c.owner
	case c.alone && c.self != nil:
		return c.self
	}
	return nil
}

// End blocks until the watches and the goroutines have ended. Call it after the context of Begin has ended.
func (c *Contact) End() {
	if c.owner != nil {
		<-c.owner.Done()
	}
	if c.self != nil {
		<-c.self.Done()
	}
	c.running.Wait()
	c.AtRest()
}

// Streams returns the context of Begin.
func (c *Contact) Streams() context.Context { return c.streams }

// Go starts a goroutine with the context of Begin. End waits for it.
func (c *Contact) Go(f func(context.Context)) { c.running.Go(func() { f(c.streams) }) }

// Wake returns a channel that gets a value when there is news.
func (c *Contact) Wake() chan struct{} { return c.wake }

// Ring signals Wake. It does not block.
func (c *Contact) Ring() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// WatchOwner starts the watch of the owner, unless it runs.
func (c *Contact) WatchOwner() {
	if c.owner == nil {
		c.owner = watch.Owner(c.streams, c.o.Store, c.ref, c.log)
		c.owner.Wake(c.wake)
	}
}

// WatchPod starts the watch of the process's own pod, unless it runs.
func (c *Contact) WatchPod() {
	if c.self == nil {
		c.self = watch.Pod(c.streams, c.o.Store, c.ref.Namespace, c.o.Pod, c.log)
		c.self.Wake(c.wake)
	}
}

// WatchOnlyPod is WatchPod for a process that watches nothing else, so that this watch determines whether there is contact.
func (c *Contact) WatchOnlyPod() {
	c.alone = true
	c.WatchPod()
}

// Owner returns the watch of the owner, nil if there is none.
func (c *Contact) Owner() *watch.OwnerStream { return c.owner }

// Pod returns the watch of the process's own pod, nil before it has the pod.
func (c *Contact) Pod() *watch.PodStream {
	if c.self == nil || !c.self.Synced() {
		return nil
	}
	return c.self
}

// UpToDate reports whether the watch of the owner is reliable now.
func (c *Contact) UpToDate() bool { return c.owner != nil && c.owner.Synced() && !c.stale }

// Away reports whether contact is lost.
func (c *Contact) Away() bool { return c.stale }

// Healthy returns an error if the loop has been busy with one thing for too long. It may be called from any goroutine.
func (c *Contact) Healthy() error {
	const most = 2 * time.Minute // several requests in a row, each bounded by request.Timeout
	since := c.since.Load()
	if busy := time.Duration(c.o.Store.Clock.Now().UnixMilli()-since) * time.Millisecond; since != 0 && busy > most {
		return fmt.Errorf("the loop has not come back for %s", busy.Round(time.Second))
	}
	return nil
}

// Busy records that the loop works on something.
func (c *Contact) Busy() { c.since.Store(c.o.Store.Clock.Now().UnixMilli()) }

// AtRest records that the loop waits.
func (c *Contact) AtRest() { c.since.Store(0) }
