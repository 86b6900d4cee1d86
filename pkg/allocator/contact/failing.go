package contact

import (
	"errors"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/watch"
)

// Failing returns the error of the request that is being repeated, empty if there is none.
func (c *Contact) Failing() string { return c.failing }

// Succeeded records that a request was answered properly.
func (c *Contact) Succeeded() { c.failing, c.silent = "", false }

// Answered reports restored contact, if it was lost before there was a watch.
func (c *Contact) Answered() {
	if c.stale && c.main() == nil {
		c.setStale(false)
		c.o.Happened(event.Back{})
	}
}

// Renewals records why the API server refuses the renewals of this pod's Lease, nil if it does not. If it refuses the credentials, contact is lost,
// although a watch may last for minutes after that.
func (c *Contact) Renewals(why error) {
	if c.refuses = request.NoContact(why); c.refuses && !c.stale {
		c.setStale(true)
		c.o.Happened(event.Away{Since: c.o.Store.Clock.Now(), Reason: request.Unauthorized(why)})
	}
	before := c.unrenewed
	if c.unrenewed = why != nil && !request.Temporary(why); c.unrenewed && !before {
		c.o.Happened(event.Unrenewed{Reason: why.Error()})
	}
}

// NoteStale reports when the watch of the owner, or the only watch, loses contact and restores it. Contact is not restored while a request or a renewal has
// no answer.
func (c *Contact) NoteStale() {
	stream := c.main()
	if stream == nil {
		return
	}
	since, why := stream.Stale()
	if (why != nil) == c.stale || c.stale && (c.silent || c.refuses) {
		return
	}
	c.setStale(why != nil)
	if c.stale {
		c.o.Happened(event.Away{Since: since, Reason: request.Unauthorized(why)})
	} else {
		c.o.Happened(event.Back{})
	}
}

func (c *Contact) setStale(stale bool) {
	if stale != c.stale {
		c.stale = stale
		c.o.Stale(stale)
	}
}

// Failed records a failed request. It returns the error if a retry does not help.
func (c *Contact) Failed(err error) error {
	c.silent = request.NoContact(err)
	switch {
	case errors.Is(err, request.ErrNotKept), errors.Is(err, request.ErrRefused), errors.Is(err, receipt.ErrNoToken):
		if c.failing != err.Error() {
			// Log: an error: the API server refuses a write, or accepted one but stored something else. A pod that has an id keeps it, but in strict mode
			// not without a Lease.
			// Do: look for an admission webhook or policy that refuses or changes idalloc's annotations or labels.
			c.log.Error(err, "a write was refused, or did not last; it is written again later")
		}
		c.failing = err.Error()
	case !c.temporary(err):
		return err
	case errors.Is(err, request.ErrConflict):
		c.o.Happened(event.Conflict{})
	default:
		c.unreachable(err)
	}
	return nil
}

// sayAgain is the interval at which a process that can only repeat a request logs that again.
const sayAgain = time.Minute

// unreachable records an error of a request that is being repeated.
func (c *Contact) unreachable(err error) {
	now, what := c.o.Store.Clock.Now(), err.Error()
	said := what == c.failing && now.Sub(c.said) < sayAgain
	if !said {
		c.failing, c.said = what, now
	}
	var forbidden *request.ForbiddenError
	switch {
	case said:
		c.log.V(1).Info("a request failed again", "reason", what)
	case errors.As(err, &forbidden):
		// Log: an error: RBAC refuses the request; after 5 s idalloc exits with code 4.
		// Do: see [every pod is stuck at exit code 4](operations.md#every-pod-is-stuck-at-exit-code-4-or-at-forbidden).
		c.log.Error(err, "a request is forbidden and will be repeated")
	default:
		// Log: the API server did not answer, is overloaded, or does not accept the credentials. The pod logs it again each minute.
		// Do: check the API server if this lasts. For credentials see [a service account that was made
		// again](outages.md#a-service-account-was-deleted-and-made-again).
		c.log.Info("a request failed and will be repeated", "reason", what)
	}
	if c.silent {
		c.Lost(err)
	}
}

// Lost logs that contact is lost. It is restored when a request is answered.
func (c *Contact) Lost(why error) {
	if c.silent = true; !c.stale {
		c.setStale(true)
		c.o.Happened(event.Away{Since: c.o.Store.Clock.Now(), Reason: why, Logged: true})
	}
}

const (
	// forbiddenGrace is how long a refusal may be a mistake: an API server that has just started refuses everything until it has read its roles.
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

// temporary reports whether a retry may help.
func (c *Contact) temporary(err error) bool {
	var forbidden *request.ForbiddenError
	if !errors.As(err, &forbidden) {
		return request.Temporary(err)
	}
	now, what := c.o.Store.Clock.Now(), forbidden.Verb+" "+forbidden.Resource
	if c.refused.what != what || now.Sub(c.refused.last) > pace.MaxDelay+forbiddenGrace {
		c.refused = refusal{what: what, since: now}
	}
	c.refused.last = now
	c.refused.times++
	return c.refused.times < doubted || now.Sub(c.refused.since) < forbiddenGrace
}

// Denied returns the error of a watch that RBAC does not permit. Without the watch a waiter would sleep forever, and a holder would not learn that its id
// is gone.
func (c *Contact) Denied() error {
	if c.owner != nil {
		if d := c.owner.Denied(); d.Err != nil && d.Lasted() >= forbiddenGrace {
			return c.deny(d, request.Forbidden(d.Verb, c.ref.GVR(), c.ref.Namespace, c.ref.Name, d.Err))
		}
	}
	if c.self != nil {
		if d := c.self.Denied(); d.Err != nil && d.Lasted() >= forbiddenGrace {
			return c.deny(d, request.Forbidden(d.Verb, store.Pods, c.ref.Namespace, "", d.Err))
		}
	}
	return nil
}

// deny records refusals of a stream that have lasted. A stream waits up to half a minute between two tries, so they would otherwise look like several new
// episodes.
func (c *Contact) deny(d watch.Denial, err *request.ForbiddenError) error {
	c.refused = refusal{what: err.Verb + " " + err.Resource, since: d.First, last: d.Last, times: doubted}
	return err
}
